#!/usr/bin/env bash
# A guest makes an md array of three served disks, and the server coordinates the disks by the array's layout: RAID 0 and RAID 5. mdadm in the
# guest writes the superblocks, `headtime array detect` reads them from the disks' files, and two readers in the guest are served in slices.
# Prints the readers' MB/s with and without coordination. SECONDS_EACH (20) is the time of the readers. Takes some minutes. KERNEL is
# a directory with Debian's kernel, in place of one that is fetched.
source "$(dirname "$0")/lib.sh"
need mdadm jq
source "$root/tests/live/guest.sh"
if [ -z "${KERNEL:-}" ]; then
    debian_kernel '*/nbd.ko' '*/virtio*' '*/failover.ko' '*/net_failover.ko' '*/ext4.ko' '*/jbd2.ko' '*/mbcache.ko' '*/crc*.ko' \
        '*/drivers/md/*' '*/async_tx/*' '*/xor.ko' '*/raid6*' '*/libcrc32c.ko'
    KERNEL=$cache/kernel
fi
guest_modules virtio_pci virtio_blk raid0 raid456
with_libraries "$(command -v mdadm)"
each=${SECONDS_EACH:-20}
names=(disk0 disk1 disk2)

# disks GEOMETRY: the configuration. With a geometry the disks are coordinated.
disks() {
    local name
    for name in "${names[@]}"; do
        cat <<TOML
[[disk]]
name = "$name"
emulate = "barracuda-7200.10-160"
store = "$work/$name.img"
size = "4GiB"
create = true
scheduler = "stream(deadline)"
TOML
    done
    [ -z "$1" ] || printf '[[array]]\nname = "md"\n%s\n' "$1"
    printf '[listen]\nnbd = "unix:%s"\ncontrol = "unix:%s"\n' "$socket" "$control"
}

# guest WHAT: runs the script with $what set, on the three disks.
guest() {
    local name drives=()
    echo "what=$1 level=$level each=$each" >"$initrd/settings"
    for name in "${names[@]}"; do
        drives+=(-drive "file=nbd:unix:$socket:exportname=$name,if=virtio,format=raw,cache=none,aio=threads")
    done
    guest_run 512 "${drives[@]}"
}

guest_init <<'GUEST'
. /settings
for module in /modules/*; do insmod "$module"; done
quietly() { "$@" >said 2>&1; }
disks='/dev/vda /dev/vdb /dev/vdc'
# In another order than the server has.
shuffled='/dev/vdc /dev/vda /dev/vdb'
wait_for_disks() {
    for try in $(seq 100); do
        [ -b /dev/vdc ] && return
        sleep 0.1
    done
    return 1
}
check 'three disks' wait_for_disks
case $what in
    create)
        # shellcheck disable=SC2086
        check "an array of level $level" quietly mdadm --create /dev/md0 --run --assume-clean --metadata=1.2 --homehost=guest --name=data \
            --level="$level" --raid-devices=3 --chunk=64 $shuffled
        check 'stopped' quietly mdadm --stop /dev/md0
        ;;
    read)
        # shellcheck disable=SC2086
        check "assembled, level $level" quietly mdadm --assemble /dev/md0 --run $disks
        blockdev --setra 1536 /dev/md0
        for skip in 0 4096; do
            timeout "$each" dd if=/dev/md0 bs=1M skip="$skip" of=/dev/null 2>/dev/null &
        done
        sleep 3
        before=$(awk '{ print $3 }' /sys/block/md0/stat)
        sleep $((each - 5))
        after=$(awk '{ print $3 }' /sys/block/md0/stat)
        wait
        echo "   level $level: $(((after - before) * 512 / (each - 5) / 1000000)) MB/s for two readers"
        check 'stopped' quietly mdadm --stop /dev/md0
        ;;
esac
GUEST

for level in 0 5; do
    rm -f "$work"/disk?.img
    disks '' >"$work/serve.toml"
    serve
    guest create
    echo 'each disk alone:'
    guest read
    stop
    "$headtime" array detect "$work"/disk{0,1,2}.img >"$work/detected" || fail 'no array was detected'
    # In the order of the array.
    members=$(sed -n 's/^members = //p' "$work/detected")
    [ "$members" = '["disk2.img", "disk0.img", "disk1.img"]' ] || fail "the order is $members"
    keys=$(sed -n '/^\[\[array\]\]/,$p' "$work/detected" | grep -v '^name\|^\[\[' | sed 's/\.img"/"/g')
    echo "detected: $(tr '\n' ' ' <<<"$keys")"
    disks "$keys" >"$work/serve.toml"
    serve
    echo 'coordinated:'
    guest read
    slices=$("$headtime" control "$control" status --json | jq '.disks[0].coordinated.slices')
    stop
    [ "$slices" -gt 10 ] || fail "only $slices slices were served"
    echo "md-guest: level $level: $slices slices"
done

#!/usr/bin/env bash
# The kernel's own NBD client, in a virtual machine without KVM: a guest connects to a served disk over TCP, writes, flushes and reads back, makes a
# file system and uses it, and disconnects; then the image has what the guest wrote. Takes a minute or two. KERNEL is a directory with Debian's
# kernel, in place of one that is fetched.
source "$(dirname "$0")/lib.sh"
need nbdinfo nbd-client mkfs.ext4 cmp
source "$root/tests/live/guest.sh"
if [ -z "${KERNEL:-}" ]; then
    debian_kernel '*/nbd.ko' '*/virtio*' '*/failover.ko' '*/net_failover.ko' '*/ext4.ko' '*/jbd2.ko' '*/mbcache.ko' '*/crc*.ko'
    KERNEL=$cache/kernel
fi
guest_modules virtio_pci virtio_net ext4 nbd
with_libraries "$(command -v nbd-client)" "$(command -v mkfs.ext4)"

mib=1048576
truncate --size=$((64 * mib)) "$work/disk.img"
head -c $((8 * mib)) /dev/urandom >"$initrd/pattern"
# A port that is free: the guest reaches it as one of 10.0.2.2, which is this machine's loopback.
for ((try = 0; ; try++)); do
    port=$((20000 + RANDOM % 20000))
    configure 'stream(deadline)' 32 "$(in_file "$work/disk.img")" "nbd = [\"unix:$socket\", \"tcp:127.0.0.1:$port\"]
tcp = true"
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    [ "$try" -lt 20 ] || skip 'no port is free'
done
serve

echo "port=$port" >"$initrd/settings"
guest_init <<'GUEST'
. /settings
for module in /modules/*; do insmod "$module"; done
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
queue=/sys/block/nbd0/queue
quietly() { "$@" >said 2>&1; }
wrote() { dd if=/pattern of=/dev/nbd0 bs="$1" seek="$2" oflag=seek_bytes conv=fsync 2>said; }
has() {
    echo 3 >/proc/sys/vm/drop_caches
    dd if=/dev/nbd0 bs=1M skip="$1" count=8388608 iflag=skip_bytes,count_bytes 2>said | cmp - /pattern
}
# With so many connections; what the server says of itself reaches the kernel.
check 'connected' quietly nbd-client -N disk0 -C 4 10.0.2.2 "$port" /dev/nbd0
check 'the size of the disk' [ "$(blockdev --getsize64 /dev/nbd0)" = 67108864 ]
check 'it can be written' [ "$(cat /sys/block/nbd0/ro)" = 0 ]
check 'it has a cache to be flushed' [ "$(cat $queue/write_cache)" = 'write back' ]

check 'written in blocks of 64 KiB, and flushed' wrote 64k 33554432
check 'read back' has 33554432
# The page cache makes whole pages of it.
check 'written in blocks of 3 KiB, at an odd offset' wrote 3k 50331649
check 'read back from there' has 50331649
check 'the first is as it was' has 33554432

# On the first half.
check 'a file system' quietly mkfs.ext4 -q -b 4096 /dev/nbd0 8192
mkdir /mnt
check 'mounted' mount -t ext4 /dev/nbd0 /mnt
for number in 1 2; do
    check "a file of 8 MiB, $number" cp /pattern "/mnt/$number"
    check 'made durable' sync
done
mkdir /mnt/many
for number in $(seq 200); do echo "$number" >"/mnt/many/$number"; done
check 'one is removed' rm /mnt/1
check 'unmounted' umount /mnt
echo 3 >/proc/sys/vm/drop_caches
check 'mounted again' mount -t ext4 /dev/nbd0 /mnt
check 'the other is whole' cmp /mnt/2 /pattern
check 'as are 200 small files' [ "$(cat /mnt/many/* | sort -n | tail -n 1) $(ls /mnt/many | wc -l)" = '200 200' ]
check 'unmounted at the end' umount /mnt
check 'disconnected' quietly nbd-client -d /dev/nbd0
GUEST
guest_run 512 -netdev user,id=net -device virtio-net-pci,netdev=net,romfile=
stop

for offset in $((32 * mib)) $((48 * mib + 1)); do
    cmp --ignore-initial="$offset:0" --bytes=$((8 * mib)) "$work/disk.img" "$initrd/pattern" || fail "the image has something else at $offset"
done
if command -v e2fsck >/dev/null; then
    e2fsck -fn "$work/disk.img" >"$work/e2fsck.out" 2>&1 || fail "the file system: $(tail -n 3 "$work/e2fsck.out")"
fi
echo "kernel-client: ${image##*/}: the image has what the guest wrote"

#!/usr/bin/env bash
# Cuts the power of an emulated drive while ext4 writes to it: afterwards the journal is replayed, the file system is clean, and every file
# that was synced before is there, whole. Then the same with a server that is killed while it serves a file store. ROUNDS (5) of each.
# The sectors' own promises are tested by `cargo test -p headtime-serve --test power_cuts`.
source "$(dirname "$0")/lib.sh"
need mkfs.ext4 fsck.ext4 losetup sha256sum
need_devices

rounds=${ROUNDS:-5}
mkdir "$work/fs"
# If it is still there.
on_exit umount --quiet --lazy "$work/fs"

# Writes files one after the other and syncs each; once it is synced its sum is in $work/synced.
writer() {
    local number=0
    while :; do
        number=$((number + 1))
        head -c $((1000 + RANDOM * 8)) /dev/urandom >"$work/next"
        dd if="$work/next" of="$work/fs/file$((number % 40))" bs=64k conv=fsync status=none 2>/dev/null || return 0
        sync -f "$work/fs" 2>/dev/null || return 0
        echo "$(sha256sum <"$work/next" | cut -d' ' -f1) file$((number % 40)) $number" >>"$work/synced"
    done
}

# The last synced contents of each file, or those that came after, unsynced: only the file being written at the cut may be neither.
compare() {
    local sum name number newest count=0
    newest=$(tail -n 1 "$work/synced" | cut -d' ' -f3)
    while read -r sum name number; do
        # The writer may have begun to write this one anew.
        [ "$name" != "file$(((newest + 1) % 40))" ] || continue
        [ "$(sha256sum <"$work/fs/$name" | cut -d' ' -f1)" = "$sum" ] || fail "$name of write $number is not what was synced"
        count=$((count + 1))
    done < <(tac "$work/synced" | awk '!seen[$2]++')
    echo "$count files as synced"
}

check() {
    mount "$loop" "$work/fs" || fail 'ext4 does not mount after the cut'
    compare
    umount "$work/fs"
    fsck.ext4 -fn "$loop" >"$work/fsck.out" 2>&1 || fail "not clean: $(cat "$work/fsck.out")"
}

one() { # kind, store
    rm -f "$work/synced" "$work"/store.img*
    local create=
    [ "$2" = memory ] || create='create = true'
    configure 'stream(deadline)' 8 "emulate = \"wd5000aaks\"
store = \"$2\"
size = \"256MiB\"
$create
faults = true" "control = \"unix:$control\""
    attach --loop
    mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard -J size=4 "$loop"
    mount "$loop" "$work/fs"
    writer &
    local writing=$!
    wait_for 30 test -s "$work/synced"
    sleep "0.$((RANDOM % 9))$((RANDOM % 10))"
    case $1 in
    power)
        "$headtime" control "$control" power-cut disk0 >/dev/null
        wait "$writing" 2>/dev/null || true
        umount "$work/fs"
        "$headtime" control "$control" power-on disk0 >/dev/null
        # The power brings nothing back that was lost: writes go on when somebody who knows that says so.
        if "$headtime" control "$control" status --json | jq --exit-status '.disks[0].failed' >/dev/null; then
            "$headtime" control "$control" clear-failure disk0 >/dev/null
        fi
        # Nothing that the loop device remembers may hide what is on the disk.
        blockdev --flushbufs "$loop"
        check
        detach
        ;;
    kill)
        kill -KILL "$server"
        wait "$server" 2>/dev/null || true
        server=
        wait "$writing" 2>/dev/null || true
        umount "$work/fs" 2>/dev/null || umount -l "$work/fs"
        "$headtime" detach "$work/mnt" >/dev/null 2>&1 || true
        attach --loop
        check
        detach
        ;;
    esac
}

for round in $(seq "$rounds"); do
    printf 'power cut %s: ' "$round"
    one power memory
done
for round in $(seq "$rounds"); do
    printf 'kill -9 %s: ' "$round"
    one kill "$work/store.img"
done
echo "power-cuts: $rounds cuts and $rounds killed servers, nothing synced is lost, ext4 clean"

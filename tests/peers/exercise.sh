#!/usr/bin/env bash
# Programs that read back what they wrote, at any offset and length: fsx on an attached disk, fio over NBD, nbdcopy and qemu-img there and back.
# OPERATIONS (20000) is how many fsx does; SEED what it draws them from.
source "$(dirname "$0")/lib.sh"
need nbdinfo nbdcopy qemu-img fio cmp
need_devices
seed=${SEED:-$RANDOM}

# A tool, built apart: it is under a license of its own, and no dependency.
fsx=$cache/fsx/bin/fsx
if [ ! -x "$fsx" ]; then
    need_tools cargo
    cargo install --quiet --root "$cache/fsx" --target-dir "$work/fsx" fsx --version 0.3.2 || skip 'fsx cannot be had'
fi

# 4 MiB and 1000 bytes: the last sector is not whole.
truncate --size=$(((4 << 20) + 1000)) "$work/odd.img"
configure 'stream(deadline)' 8 "$(in_file "$work/odd.img")"
attach
cat >"$work/fsx.toml" <<TOML
flen = $(((4 << 20) + 1000))
blockmode = true
[opsize]
max = 65536
[weights]
read = 10
write = 10
punch_hole = 3
fsync = 1
mapread = 0
mapwrite = 0
truncate = 0
close_open = 0
posix_fallocate = 0
TOML
"$fsx" -P "$work" -f "$work/fsx.toml" -N "${OPERATIONS:-20000}" -S "$seed" "$work/mnt/disk0" >"$work/fsx.out" 2>&1 || fail "fsx -S $seed: $(tail -n 20 "$work/fsx.out")"
detach
echo "fsx: ${OPERATIONS:-20000} operations, seed $seed"

truncate --size=64M "$work/file.img"
configure 'stream(deadline)' 8 "$(in_file "$work/file.img")"
serve
# Blocks do not overlap: with several in flight fio does not know which of two was last.
verify() {
    fio --name=fio --ioengine=nbd --uri="$(uri)" --iodepth=32 --size=64m --randseed="$seed" --verify=crc32c --verify_state_save=0 --minimal \
        "$@" >"$work/fio.out" 2>&1 || fail "fio $*: $(tail -n 5 "$work/fio.out")"
}
verify --rw=write --bsrange=512-192k --bs_unaligned=1
verify --rw=randwrite --bs=3001
echo 'fio: blocks of 512 B to 192 KiB in a row, and of 3001 B at random, verified'
# An image that is not whole sectors long, into an export of its length.
stop
head -c $(((64 << 20) - 1000)) /dev/urandom >"$work/random"
truncate --size=$(((64 << 20) - 1000)) "$work/file.img"
serve
nbdcopy --request-size=33554432 --requests=4 "$work/random" "$(uri)"
nbdcopy --connections=4 "$(uri)" "$work/back"
cmp "$work/random" "$work/back" || fail 'nbdcopy'
echo 'nbdcopy: there and back, 32 MiB at a time'
# qemu-img rounds an image up to 512 bytes.
stop
truncate --size=64M "$work/file.img"
head -c 64M /dev/urandom >"$work/random"
serve
qemu-img convert -n -f raw -O raw "$work/random" "$(uri)"
qemu-img convert -f raw -O raw "$(uri)" "$work/back"
cmp "$work/random" "$work/back" || fail 'qemu-img convert'
echo 'qemu-img convert: there and back'
stop

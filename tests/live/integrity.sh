#!/usr/bin/env bash
# What was written is read back: fio with crc32c over NBD and over a file of FUSE, depth 32, mixed sizes, under every scheduler. A few
# minutes; SCHEDULERS, EMULATED (those of an emulated drive) and SIZE (of a run) narrow it.
source "$(dirname "$0")/lib.sh"
need fio nbdinfo

read -ra schedulers <<<"${SCHEDULERS:-noop deadline mq-deadline clook sstf sptf sptf-sw60 anticipatory cfq stream(deadline) stream(sptf)}"
read -ra emulated <<<"${EMULATED:-stream(deadline)}"
size=${SIZE:-48m}

verify() { # fio options that name the disk
    fio --name=verify "$@" --rw=randwrite --bssplit=512/10:4k/50:20k/20:64k/15:512k/5 --blockalign=512 --iodepth=32 --size="$size" --randseed=3 \
        --norandommap=0 --fsync=64 --verify=crc32c --verify_fatal=1 --do_verify=1 --verify_state_save=0 --minimal >"$work/fio.out" 2>&1 || fail "$*: $(cat "$work/fio.out")"
}

truncate --size=256M "$work/file.img"
file=$(in_file "$work/file.img")

for scheduler in "${schedulers[@]}"; do
    configure "$scheduler" 8 "$file"
    serve
    verify --ioengine=nbd --uri="$(uri)"
    stop
    echo "nbd, file, $scheduler: as written"
done
# An emulated drive takes its time.
for scheduler in "${emulated[@]}"; do
    configure "$scheduler" 8 "$(in_memory wd5000aaks 256MiB)"
    serve
    size=4m verify --ioengine=nbd --uri="$(uri)"
    stop
    echo "nbd, emulated, $scheduler: as written"
done

[ -w /dev/fuse ] || skip 'FUSE: /dev/fuse cannot be opened'
for scheduler in "${schedulers[@]}"; do
    configure "$scheduler" 8 "$file"
    attach
    verify --ioengine=io_uring --direct=1 --filename="$work/mnt/disk0"
    detach
    echo "fuse, file, $scheduler: as written"
done
echo 'integrity: everything is as it was written'

#!/usr/bin/env bash
# The class of an export arrives at the block layer: the kernel's tracepoint block_rq_issue shows the I/O priority of requests to a loop
# device. Exit code 77: no root, no loop devices, or a kernel whose tracepoint shows no priority.
source "$(dirname "$0")/lib.sh"
skipped=77
need qemu-io losetup lsblk
need_devices
trace=/sys/kernel/tracing
[ -d $trace/events ] || mount -t tracefs none $trace 2>/dev/null || skip 'there is no tracefs'
grep -q ioprio $trace/events/block/block_rq_issue/format 2>/dev/null || skip 'the tracepoint block_rq_issue shows no priority'

truncate -s 64M "$work/image"
device=$(losetup --find --show "$work/image")
on_exit losetup --detach "$device"
numbers=$(lsblk --nodeps --noheadings --output MAJ:MIN "$device" | tr -d ' ')

mine=$trace/instances/headtime-$$
mkdir "$mine" || skip 'the kernel makes no trace of our own'
on_exit rmdir "$mine"
event=$mine/events/block/block_rq_issue
echo "dev == $((${numbers%:*} << 20 | ${numbers#*:}))" >"$event/filter"

# traced KEY: operation, sector and class of the requests of three exports.
traced() {
    configure noop 32 "device = \"$device\"
$1
[[disk.export]]
name = \"urgent\"
class = \"real-time\"
[[disk.export]]
name = \"usual\"
[[disk.export]]
name = \"rest\"
class = \"idle\""
    first_export=usual serve
    echo >"$mine/trace"
    echo 1 >"$event/enable"
    local export at=0
    for export in urgent usual rest; do
        at=$((at + 1))
        qemu-io -f raw -c "read ${at}M 4k" -c "write ${at}M 4k" "$(uri "$export")" >/dev/null
    done
    echo 0 >"$event/enable"
    stop
    # Such as `7,5 RS 4096 () 2048 + 8 rt,0,4 [disk-disk0]`. A flush has no bytes.
    sed -nE 's/.*[0-9]+,[0-9]+ (R|W)[A-Z]* [0-9]+ \(\) ([0-9]+) \+ 8 ([a-z]+),.*/\1 \2 \3/p' "$mine/trace" >"$work/traced"
}

# expect WHAT CLASS...: of the three exports.
expect() {
    local what=$1 at=0
    shift
    for class in "$@"; do
        at=$((at + 2048))
        printf '%s %s %s\n' R $at "$class" W $at "$class"
    done >"$work/expected"
    diff "$work/expected" "$work/traced" >&2 || fail "$what: other classes arrive"
}

traced 'io_priority = true'
expect 'with io_priority' rt be idle
"$headtime" serve "$work/serve.toml" --check | grep -q ', classes sent, no NCQ priority shown' || fail '--check does not say that classes are sent'
traced ''
# The kernel takes the class of the server's thread, none or best effort.
[ "$(cut -d ' ' -f 3 "$work/traced" | sort -u | wc -l)" = 1 ] || fail 'without io_priority: several classes arrive'
if "$headtime" serve "$work/serve.toml" --check | grep -q classes; then
    fail '--check reports classes of a drive that has none'
fi
echo 'ok: each class arrives at the block layer, and one for all without io_priority'

#!/usr/bin/env bash
# A reader with one request at a time beside rivals with 256 random reads each, on another export of one emulated disk. Says the reader's
# median and longest read, its reads a second and those of all, with shares (share_by = "export") and without ("none").
#
#   benches/live/isolation.sh [--seconds 20] [--rivals 2] [--smoke]
#   benches/live/isolation.sh --short [--drive exos-x18] [--size 1m] [--rw randwrite] [--depth 8] [--requests 64]
#
# `--short` has two schedulers, with shares alone. `--size`, `--rw` and `--requests` are of the rivals. All requests on the way have to end
# before a row ends: 4,096 random reads take half a minute.
#
# A row marked `!` had more than 1 % of its completions late: the machine was too busy for it.
source "$(dirname "$0")/../../tests/live/lib.sh"
seconds=20 rivals=2 smoke= short= drive=wd5000aaks size=4k rw=randread depth=32 requests=256
while [ $# -gt 0 ]; do
    case $1 in
        --seconds) seconds=$2; shift ;;
        --rivals) rivals=$2; shift ;;
        --drive) drive=$2; shift ;;
        --size) size=$2; shift ;;
        --rw) rw=$2; shift ;;
        --depth) depth=$2; shift ;;
        --requests) requests=$2; shift ;;
        --short) short=1 ;;
        --smoke) smoke=1 seconds=6 ;;
        *) echo "usage: $0 [--seconds N] [--rivals N] [--drive NAME] [--size SIZE] [--rw MODE] [--depth N] [--requests N] [--short] [--smoke]" >&2; exit 2 ;;
    esac
    shift
done
need fio jq
renice -n -15 -p $$ >/dev/null 2>&1 || true

# row SCHEDULER GATE BY CLASS: a row of the table.
row() {
    configure "$1" "$depth" "emulate = \"$drive\"
store = \"memory\"
gate = \"$2\"
[[disk.export]]
name = \"disk0\"
class = \"$4\"
share_by = \"$3\"
[[disk.export]]
name = \"bulk\"
share_by = \"$3\"" "nbd = \"unix:$socket\"
control = \"unix:$control\""
    serve
    fio --ioengine=nbd --size=100% --time_based --norandommap --output-format=json --output="$work/fio.json" \
        --name=bulk --uri="$(uri bulk)" --rw="$rw" --bs="$size" --iodepth="$requests" --numjobs="$rivals" --runtime=$((seconds + 1)) --group_reporting \
        --name=reader --uri="$(uri)" --rw=randread --bs=4k --iodepth=1 --numjobs=1 --startdelay=1 --runtime="$seconds" --new_group \
        >"$work/fio.out" 2>"$work/fio.err" || fail "fio: $(cat "$work/fio.err")"
    "$headtime" control "$control" status --json >"$work/status.json"
    stop
    jq -r --slurpfile status "$work/status.json" --arg row "$1, $2, $3, $4" '
        def tenth: . * 10 | round / 10;
        [.jobs[] | {key: .jobname, value: (if .read.total_ios > 0 then .read else .write end)}] | from_entries as $jobs
        | (if $status[0].disks[0].lateness_ms.late_share > 0.01 then " !" else "" end) as $late
        | $jobs.reader as $one | ($jobs.bulk.iops + $one.iops) as $all
        | "| \($row)\($late) | \($one.clat_ns.percentile["50.000000"] / 1e6 | tenth) | \($one.clat_ns.max / 1e6 | round) | \($one.iops | tenth) | \($all | tenth) |"' \
        "$work/fio.json"
}

echo "| scheduler, gate, share_by, class ($rivals rivals with $requests, $rw $size, $drive, depth $depth) | p50 ms | longest ms | reads/s | all requests/s |"
echo '|---|---|---|---|---|'
sharing='none export'
[ -z "$short" ] || sharing=export
for by in $sharing; do
    row deadline depth $by best-effort
    [ -z "$smoke" ] || continue
    row noop depth $by best-effort
    [ -z "$short" ] || continue
    row mq-deadline depth $by best-effort
    row cfq depth $by best-effort
    row 'stream(deadline)' depth $by best-effort
    row deadline head-time $by best-effort
    row deadline head-time $by real-time
done

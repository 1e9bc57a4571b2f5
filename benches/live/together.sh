#!/usr/bin/env bash
# All four systems on one live server: a striped and coordinated array under `stream` with two programs that have goals, an urgent export and bulk reads, and
# a scrub in gaps on a disk of its own beside random readers. Emulated disks, over NBD. Takes the profiles of both programs, and then runs all together under each gate.
# Prints which promises were kept.
#
#   benches/live/together.sh [--goal TIMES] [--seconds N] [--smoke]
#
# --goal     goals of both programs as multiples of their runs alone; 4 if not given
# --seconds  length of a program's run alone, about; 10 if not given
# --smoke    shows that all parts run, with runs of 2 s and one gate
# A row counts if under 1 % of the completions were more than 0.5 ms late; other rows are marked `!`.
# Needs fio with its nbd engine, jq and libnbd's nbdinfo; ends with code 77 where they are missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../tests/live/lib.sh"
skipped=77
goal=4 seconds=10 smoke=
while [ $# -gt 0 ]; do
    case $1 in
    --goal) goal=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --smoke) smoke=yes seconds=2 ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
    shift
done
need fio jq nbdinfo
fio --enghelp | grep -qw nbd || skip 'fio has no nbd engine'
programs=(report index)
first_export=report

# settings GATE: three disks as an array, and a disk that is scrubbed.
settings() {
    local disk name
    for disk in 0 1 2 3; do
        printf '[[disk]]\nname = "disk%s"\nemulate = "barracuda-7200.10-160"\nstore = "memory"\nscheduler = "stream(deadline)"\n' $disk
        if [ $disk = 3 ]; then
            printf 'depth = 1\nscrub = "%s/scrub"\n' "$work"
        else
            printf 'depth = 2\ngate = "%s"\n' "$1"
        fi
    done
    printf '[[array]]\nname = "volume"\nmembers = ["disk0", "disk1", "disk2"]\ncoordinate = true\n'
    printf '[[array.export]]\nname = "report"\nrange = "0B..60GiB"\n'
    printf '[[array.export]]\nname = "index"\nrange = "100GiB..160GiB"\n'
    printf '[[array.export]]\nname = "urgent"\nclass = "real-time"\nrange = "60GiB..100GiB"\n'
    printf '[[array.export]]\nname = "bulk"\nrange = "200GiB..260GiB"\n'
    printf '[listen]\nnbd = "unix:%s"\ncontrol = "unix:%s"\n' "$socket" "$control"
    [[ $1 = windows* ]] || return 0
    for name in "${programs[@]}"; do
        printf '[[qos.program]]\nname = "%s"\nexports = ["%s"]\n' "$name" "$name"
        [ ! -s "$work/$name.profile" ] || printf 'profile = "%s"\n' "$work/$name.profile"
    done
    printf '[[qos.program]]\nname = "bulk"\nexports = ["bulk"]\n'
}

start() {
    settings "$1" >"$work/serve.toml"
    serve
}

ask() { "$headtime" control "$control" "$@"; }

# fio_on EXPORT OPTION...: becomes a run of fio, for a subshell; what fio measured is in $work/EXPORT.json.
fio_on() {
    local export=$1
    shift
    exec fio --ioengine=nbd --thread --output-format=json --output="$work/$export.json" --size=30g --name="$export" --uri="$(uri "$export")" "$@" >/dev/null
}

# value EXPORT FILTER: of the reads of a run. Messages of fio stand in front.
value() { sed -n '/^{/,$p' "$work/$1.json" | jq "$2"; }

# program NAME SEED: its run to the end.
program() {
    case $1 in
    report) (fio_on report --rw=read --bs=128k --iodepth=6 --io_size=$((150 * seconds))m) ;;
    index) (fio_on index --rw=randread --bs=64k --iodepth=6 --io_size=$((10 * seconds))m --norandommap --randseed="$2") ;;
    esac
}

run_s() { value "$1" '.jobs[0].read.runtime / 1000'; }

declare -A alone
say 'profiles'
start windows
for name in "${programs[@]}"; do
    ask qos profile "$name" start >/dev/null
    program "$name" 7
    sleep 0.3
    ask qos profile "$name" stop >"$work/$name.profile"
    alone[$name]=$(run_s "$name")
    say "$name: ${alone[$name]} s alone"
done
# Readers of the fourth disk without a scrub.
(fio_on disk3 --rw=randread --bs=4k --iodepth=4 --time_based --runtime="$seconds" --norandommap)
readers_alone=$(value disk3 '.jobs[0].read.iops')
stop

# verdict VALUE CONDITION: the value, and whether the promise was kept.
verdict() { jq -nr "($1) as \$value | (if $2 then \"kept\" else \"**no**\" end) as \$kept | \"\(\$value * 10 | round | . / 10), \(\$kept)\""; }

# row GATE: all at the same time, until both programs have ended.
row() {
    local gate=$1 late='' running=() pids=() name cells=() status
    rm -rf "$work/scrub"
    start "$gate"
    if [[ $gate = windows* ]]; then
        for name in "${programs[@]}"; do ask qos goal "$name" "${goal}x" >/dev/null; done
    fi
    "$headtime" scrub "$control" disk3 --no-wait --idle off --block 64KiB >/dev/null
    fio_on bulk --rw=read --bs=256k --iodepth=2 --time_based --runtime=600 &
    pids+=($!)
    fio_on urgent --rw=randread --bs=4k --iodepth=1 --numjobs=2 --group_reporting --thinktime=50ms --time_based --runtime=600 --norandommap &
    pids+=($!)
    fio_on disk3 --rw=randread --bs=4k --iodepth=4 --time_based --runtime=600 --norandommap &
    pids+=($!)
    for name in "${programs[@]}"; do
        program "$name" 1 &
        running+=($!)
    done
    wait "${running[@]}"
    status=$(ask status --json 2>/dev/null || ask status)
    kill -INT "${pids[@]}"
    wait "${pids[@]}" || true
    late=$(jq -r '[.disks[].lateness_ms.late_share] | if max > 0.01 then " !" else "" end' <<<"$status")
    stop
    for name in "${programs[@]}"; do
        cells+=("$(verdict "($(run_s "$name") / (${alone[$name]} * $goal) - 1) * 100" '$value <= 5')")
    done
    cells+=("$(verdict "$(value urgent '.jobs[0].read.clat_ns.percentile["99.000000"] / 1e6')" '$value <= 50')")
    cells+=("$(verdict "$(value bulk '.jobs[0].read.bw_bytes / 1e6')" '$value >= 20')")
    cells+=("$(verdict "100 * $(value disk3 '.jobs[0].read.iops') / $readers_alone" '$value >= 95')")
    cells+=("$(jq -r '.disks[] | select(.name == "disk3") | (.scrub.read.in_gaps // 0) * (.scrub.block // 0) / 1e6 | round' <<<"$status")")
    cells+=("$(jq -r '.disks[] | select(.name == "volume") | .coordinated.slices' <<<"$status")")
    printf '| `%s`%s |' "$gate" "$late"
    printf ' %s |' "${cells[@]}"
    echo
    if [ -n "$smoke" ] && [ "${cells[6]}" = null ]; then fail 'the disks were not coordinated'; fi
}

echo '| gate | `report`, % late, at most 5 | `index`, % late, at most 5 | `urgent`, p99 ms, at most 50 | bulk, MB/s, at least 20 | readers beside the scrub, % of alone, at least 95 | scrub, MB in gaps | slices |'
echo '|---|---|---|---|---|---|---|---|'
[ -n "$smoke" ] || row depth
[ -n "$smoke" ] || row rsd-priority:ranks=0/1
[ -n "$smoke" ] || row windows
row 'windows(rsd-priority:ranks=0/1:queue=single)'

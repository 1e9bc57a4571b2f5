#!/usr/bin/env bash
# Buffered readers on an array of three emulated disks behind a loop device: what schedulers inside Headtime make of them, each disk alone
# and coordinated, and what Linux's own make of the same loop device. Prints a table.
#
#   benches/live/array.sh [--smoke] [--readers N,..] [--rows NAME,..] [--list] [--repeat N] [--seconds N]
#
# --smoke    noop, stream and stream coordinated with 4 readers, 3 s each; fails unless coordinated has 1.5 times noop
# --readers  2,4,8 if not given
# --rows     only these (names as in the table); --list prints them
# --repeat   the median of N runs of each row, and their range
# A row counts only if under 1 % of the completions were more than 0.5 ms late; else the last column says so.
# Needs root, FUSE, loop devices, fio, jq; ends with code 77 where they are missing.
#
# The readers are fio's: processes that read(2) 8 KiB at a time (psync) through the page cache, each a stretch of its own of the device. The
# device reads two stripes ahead, as md has it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# name; Headtime's scheduler; coordinate; the kernel's; tags below that
all_rows='
noop;noop;false;none;
deadline;deadline;false;none;
stream(deadline);stream(deadline);false;none;
coordinated;stream(deadline);true;none;
linux none;noop;false;none;12
linux mq-deadline;noop;false;mq-deadline;12
linux bfq;noop;false;bfq;12
linux kyber;noop;false;kyber;12'

only='' repeat=1 seconds=20 settle=2 smoke=no readers=2,4,8
while [ $# -gt 0 ]; do
    case $1 in
    --rows) only=$2 && shift ;;
    --readers) readers=$2 && shift ;;
    --repeat) repeat=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --smoke) smoke=yes seconds=3 settle=1 readers=4 only='noop,stream(deadline),coordinated' ;;
    --list)
        awk -F';' 'NF { print $1 }' <<<"$all_rows"
        exit
        ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
    shift
done
begin fio jq

# configure_array SCHEDULER COORDINATE: three disks, one array
configure_array() {
    local disk
    for disk in a b c; do
        printf '[[disk]]\nname = "%s"\nemulate = "barracuda-7200.10-160"\nstore = "memory"\nscheduler = "%s"\ndepth = 1\nseed = %d\n\n' \
            $disk "$1" "'$disk"
    done >"$work/serve.toml"
    printf '[[array]]\nname = "array"\nmembers = ["a", "b", "c"]\ncoordinate = %s\n\n[listen]\ncontrol = "unix:%s"\n' "$2" "$control" >>"$work/serve.toml"
}

# read_parts COUNT: so many readers, 50 GB apart; prints "MB/s least most".
read_parts() {
    local jobs=() reader
    for ((reader = 0; reader < $1; reader++)); do
        jobs+=(--name="reader$reader" --offset=$((reader * 50))G --size=40G)
    done
    fio --ioengine=psync --rw=read --bs=8k --direct=0 --invalidate=1 --fadvise_hint=0 --filename="$loop" --time_based --runtime="$seconds" \
        --ramp_time="$settle" --output-format=terse --terse-version=3 "${jobs[@]}" >"$work/fio"
    # Terse fields: 5 error, 6 KiB read, 9 ms.
    awk -F';' -v count="$1" '
        $1 == 3 {
            if ($5 != 0) bad = 1
            rate = $6 * 1024 / ($9 * 1000)
            if (n++ == 0 || rate < least) least = rate
            if (rate > most) most = rate
            sum += rate
        }
        END {
            if (bad || n != count) exit 1
            printf "%.1f %.1f %.1f\n", sum, least, most
        }' "$work/fio" || fail "fio failed: $(cat "$work/fio")"
}

# run_row READERS SCHEDULER COORDINATE KERNEL TAGS: "MB/s least most p99.9_ms late_percent"
run_row() {
    local before=${#undos[@]}
    configure_array "$2" "$3"
    attach --loop
    queue=/sys/block/${loop#/dev/}/queue
    [ "$(cat "$queue/read_ahead_kb")" = 384 ] || fail "read-ahead is $(cat "$queue/read_ahead_kb") KiB"
    kernel_scheduler "$4" "$5"
    echo 3 >/proc/sys/vm/drop_caches
    measured="$(read_parts "$1") $(lateness)"
    undo_to "$before"
    detach
}

echo "# $machine, commit $commit, three barracuda-7200.10-160, chunks of 64 KiB, $seconds s"
printf '| readers | scheduler | MB/s | range | slowest, fastest reader | p99.9 late, ms | late, %% |\n|---|---|---|---|---|---|---|\n'
declare -A rates
for count in ${readers//,/ }; do
    while IFS=';' read -r name scheduler coordinate kernel tags; do
        [ -n "$name" ] || continue
        case ",$only," in ,, | *",$name,"*) ;; *) continue ;; esac
        : >"$work/runs"
        for ((run = 0; run < repeat; run++)); do
            run_row "$count" "$scheduler" "$coordinate" "$kernel" "$tags" </dev/null
            echo "$measured" >>"$work/runs"
        done
        sort -n -o "$work/runs" "$work/runs"
        middle=$(sed -n "$(((repeat + 1) / 2))p" "$work/runs")
        range="$(head -n 1 "$work/runs" | cut -d' ' -f1) to $(tail -n 1 "$work/runs" | cut -d' ' -f1)"
        late=$(awk '{ if ($5 > most) most = $5 } END { print most + 0 }' "$work/runs")
        verdict=$(awk -v late="$late" 'BEGIN { print late < 1 ? late : late " (does not count)" }')
        read -r rate least most p999 _ <<<"$middle"
        rates[$name]=$rate
        printf '| %s | %s | %s | %s | %s, %s | %s | %s |\n' "$count" "$name" "$rate" "$range" "$least" "$most" "$p999" "$verdict"
    done <<<"$all_rows"
done
if [ $smoke = yes ]; then
    awk -v noop="${rates[noop]}" -v coordinated="${rates[coordinated]}" 'BEGIN { exit !(coordinated >= 1.5 * noop) }' ||
        fail "coordinated has ${rates[coordinated]} MB/s, noop ${rates[noop]}"
fi

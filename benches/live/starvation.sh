#!/usr/bin/env bash
# A sequential and a random reader on one emulated disk that takes 32 commands at once: what keeps the random one from starving in the
# drive, inside Headtime (its gates, one command at a time) and above it (Linux's own schedulers, on a loop device). Prints a table.
#
#   benches/live/starvation.sh [--seconds N] [--rows NAME;..] [--cap TIME] [--smoke]
#
# --rows     only these; --list prints those that there are. `linux NAME` may name any scheduler of the kernel
# --cap      how long the drive stays with a stream, in place of its profile's 100 ms
# --smoke    noop, rsd:age_th=30, bfq, and a scheduler that no kernel has, 3 s each, with a cap of 2 s; fails unless the gate gives the
#            random reader three times the reads of noop, and what the kernel lacks is a row that says so
#
# Both readers read the loop device directly: 128 KiB in sequence, 8 at a time, and 4 KiB at random, one at a time, with 2 ms in
# between. A scheduler that this machine's kernel lacks is a row that is skipped, with the reason. Needs root, FUSE, loop devices, fio, jq;
# ends with code 77 where they are missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# name; Headtime's depth; its gate; the kernel's scheduler
all_rows='
noop, depth 1;1;depth;none
noop;32;depth;none
rsd:age_th=30;32;rsd:age_th=30;none
linux none;32;depth;none
linux mq-deadline;32;depth;mq-deadline
linux kyber;32;depth;kyber
linux bfq;32;depth;bfq'
seconds=20 settle=2 only='' cap='' smoke=no
while [ $# -gt 0 ]; do
    case $1 in
    --seconds) seconds=$2 && shift ;;
    --rows) only=$2 && shift ;;
    --cap) cap=$2 && shift ;;
    --smoke) smoke=yes seconds=3 settle=1 cap=2s only='noop;rsd:age_th=30;linux bfq;linux no-such' ;;
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
if [ -n "$only" ]; then
    rows=
    while IFS= read -r name; do
        row=$(awk -F';' -v name="$name" '$1 == name' <<<"$all_rows")
        if [ -z "$row" ] && [[ $name = 'linux '* ]]; then row="$name;32;depth;${name#linux }"; fi
        [ -n "$row" ] || fail "there is no row $name; --list prints those that there are"
        rows+=$row$'\n'
    done <<<"${only//;/$'\n'}"
else
    rows=$all_rows
fi
begin fio jq

# lacks NAME: why the kernel cannot have that scheduler on the loop device; nothing if it can. One that is a module is loaded by its name.
lacks() {
    local reason
    { echo "$1" >"$queue/scheduler"; } 2>/dev/null && return
    reason=$(tr -d '[]' <"$queue/scheduler")
    echo "the kernel has no $1 for $loop, only ${reason% }"
}

# run_row DEPTH GATE KERNEL: "reads/s mean_ms max_ms MB/s late_percent", or "skipped REASON".
run_row() {
    local before=${#undos[@]} reason tags=
    configure noop "$1" "emulate = \"$profile\"
store = \"memory\"
gate = \"$2\"
${cap:+override.queue.stream_cap = \"$cap\"}" "control = \"unix:$control\""
    attach --loop
    queue=/sys/block/${loop#/dev/}/queue
    reason=$(lacks "$3")
    if [ -n "$reason" ]; then
        measured="skipped $reason"
    else
        [ "$3" = none ] || tags=32
        kernel_scheduler "$3" "$tags"
        # The random reader is never alone, and thinks for 2 ms, so that what the path adds does not matter.
        (cd "$work" && fio --filename="$loop" --direct=1 --ioengine=libaio --time_based --ramp_time="$settle" --output-format=json \
            --name=scrub --runtime=$((seconds + 3)) --rw=read --bs=128k --iodepth=8 \
            --name=reader --runtime="$seconds" --startdelay=1 --rw=randread --bs=4k --iodepth=1 --thinktime=2ms --norandommap --randseed=11) \
            >"$work/fio" || fail "fio failed: $(cat "$work/fio")"
        measured=$(jq -r '(.jobs[] | select(.jobname == "reader") | .read | .iops, .clat_ns.mean / 1e6, .clat_ns.max / 1e6),
            (.jobs[] | select(.jobname == "scrub") | .read.bw_bytes / 1e6) | . * 10 | round / 10' "$work/fio" | tr '\n' ' ')
        measured+=$(lateness | cut -d' ' -f2)
    fi
    undo_to "$before"
    detach
}

say "$machine; commit $commit; load $(cut -d' ' -f1-3 /proc/loadavg)"
results=$work/results
while IFS=';' read -r name depth gate kernel; do
    [ -n "$name" ] || continue
    run_row "$depth" "$gate" "$kernel"
    say "$name: $measured"
    echo "$name;$measured" >>"$results"
done <<<"$rows"

awk -F';' '
    BEGIN {
        print "| row | 4 KiB reads/s | mean ms | longest ms | scrub MB/s | over 0.5 ms late |"
        print "|---|---|---|---|---|---|"
    }
    $2 ~ /^skipped / { sub(/^skipped /, "", $2); printf "| `%s` | skipped: %s | | | | |\n", $1, $2; next }
    { split($2, f, " "); printf "| `%s` | %s | %s | %s | %s | %s %%%s |\n", $1, f[1], f[2], f[3], f[4], f[5], (f[5] > 0.5 ? " !" : "") }
' "$results" | tee "$work/table"

if [ $smoke = yes ]; then
    grep -q '^| `linux no-such` | skipped: the kernel has no no-such for /dev/loop' "$work/table" || fail 'a scheduler that the kernel lacks is not said to be'
    awk -F'[; ]' '$1 == "noop" { a = $2 } $1 == "rsd:age_th=30" { b = $2 } END { exit !(b > 3 * a) }' "$results" ||
        fail 'rsd:age_th=30 does not give the random reader three times the reads of noop'
fi
say "took $SECONDS s"

#!/usr/bin/env bash
# Four buffered readers, a file of 1 GB each, 50 GB apart, on ext4 on a loop device on an emulated disk:
# what schedulers inside Headtime make of it, and what Linux's own make of the same disk. Prints a table.
#
#   benches/live/par-read.sh [--full] [--smoke] [--extra] [--rows NAME,..] [--repeat N]
#       [--seconds N] [--trace FILE]
#
# --full     whole files in place of 20 s after 2 s
# --extra    also longer slices, the kernel's own read-ahead, and 32 requests in the drive, which has an
#            order of its own
# --rows     only these (names as in the table); --list prints them
# --repeat   the median of N runs of each row, and their range
# --trace    records the first run of noop there (`headtime trace record`)
# --smoke    noop and stream(deadline), 3 s each; fails unless stream has 1.5 times the throughput
# Needs root, FUSE, loop devices, fio, jq; ends with code 77 where they are missing.
#
# The readers are fio's: processes that read(2) 8 KiB at a time (psync), through the page cache, with no
# advice to the kernel. fio counts per process and in a window of time, which dd does not.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# name; Headtime's scheduler; its depth; the kernel's; tags below that; read-ahead
main_rows='
noop;noop;1;none;;128KiB
deadline;deadline;1;none;;128KiB
stream(deadline);stream(deadline);1;none;;128KiB
linux none;noop;1;none;4;128KiB
linux mq-deadline;noop;1;mq-deadline;4;128KiB
linux bfq;noop;1;bfq;4;128KiB
linux kyber;noop;1;kyber;4;128KiB'
extra_rows='
stream(deadline):slice=250ms;stream(deadline):slice=250ms;1;none;;128KiB
noop, read-ahead;noop;1;none;;default
deadline, read-ahead;deadline;1;none;;default
stream(deadline), read-ahead;stream(deadline);1;none;;default
linux mq-deadline, read-ahead;noop;1;mq-deadline;4;default
linux bfq, read-ahead;noop;1;bfq;4;default
linux kyber, read-ahead;noop;1;kyber;4;default
noop, depth 32;noop;32;none;;128KiB
deadline, depth 32;deadline;32;none;;128KiB
stream(deadline), depth 32;stream(deadline);32;none;;128KiB
linux mq-deadline, depth 32;noop;32;mq-deadline;32;128KiB
linux bfq, depth 32;noop;32;bfq;32;128KiB
linux kyber, depth 32;noop;32;kyber;32;128KiB'

rows=$main_rows only='' repeat=1 seconds=20 settle=2 full=no smoke=no trace=
while [ $# -gt 0 ]; do
    case $1 in
    --full) full=yes ;;
    --extra) rows=$main_rows$extra_rows ;;
    --rows) only=$2 rows=$main_rows$extra_rows && shift ;;
    --repeat) repeat=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --trace) trace=$(realpath "$2") && shift ;;
    --smoke) smoke=yes seconds=3 settle=1 only='noop,stream(deadline)' ;;
    --list)
        awk -F';' 'NF { print $1 }' <<<"$main_rows$extra_rows"
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

files=(a/file b/file c/file d/file)
make_image "$work/image" a b c d
make_files "$work/image" 1000000000 "${files[@]}"
close_image

# run_row SCHEDULER DEPTH KERNEL TAGS READ_AHEAD: "MB/s least most p99.9_ms late_percent"
run_row() {
    local before=${#undos[@]}
    stack "$work/image" "$1" "$2" "$5"
    kernel_scheduler "$3" "$4"
    fs_up
    cold
    record_start
    measured="$(read_files 1000000000 "${files[@]/#/$work/fs/}") "
    record_stop
    measured+=$(lateness)
    undo_to "$before"
    detach
}

say "$machine; commit $commit; load $(cut -d' ' -f1-3 /proc/loadavg)"
results=$work/results
while IFS=';' read -r name scheduler depth kernel tags ahead; do
    [ -n "$name" ] || continue
    # Names have commas: compare whole ones with what remains of the list.
    if [ -n "$only" ] && [[ ";$(sed 's/,\([^ ]\)/;\1/g' <<<"$only");" != *";$name;"* ]]; then continue; fi
    for ((run = 0; run < repeat; run++)); do
        recording=
        [ "$name" != noop ] || [ $run != 0 ] || recording=$trace
        run_row "$scheduler" "$depth" "$kernel" "$tags" "$ahead"
        say "$name: $measured"
        echo "$name;${measured// /;}" >>"$results"
    done
done <<<"$rows"
[ -s "$results" ] || fail "no such rows; --list prints them"

print_table "$results" 0.5

if [ $smoke = yes ]; then
    awk -F';' '$1 == "noop" { a = $2 } $1 == "stream(deadline)" { b = $2 }
        END { if (b < 1.5 * a) { print "stream(deadline) has less than 1.5 times the throughput of noop"; exit 1 } }' "$results" >&2
fi
say "took $SECONDS s"

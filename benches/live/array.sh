#!/usr/bin/env bash
# Buffered readers of files 50 GB apart, on ext4 on a loop device on an array of three emulated disks: what schedulers inside Headtime
# make of the array, each disk alone and coordinated, and what Linux's own make of the same loop device. Prints a table.
#
#   benches/live/array.sh [--smoke] [--readers N,..] [--rows NAME,..] [--list] [--repeat N] [--seconds N]
#
# --smoke    noop, stream(deadline) and coordinated with 4 readers, 2 s each; fails unless coordinated has 1.5 times noop and all logs replay
# --readers  2,4,8 if not given
# --rows     only these (names as in the table); --list prints them
# --repeat   the median of N runs of each row, and their range
# --seconds  8 if not given, at most 8: files have no more data than that
# The row null has three null devices in place of the disks: what the path carries. Its readers read the loop device.
# A run counts if under 1 % of the completions were more than 0.5 ms late. Other runs are repeated up to twice, and then marked `!`.
# Needs root, FUSE, loop devices, fio, jq, python3; ends with code 77 where they are missing, or where the machine was too busy for --smoke.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# name; Headtime's scheduler; coordinate; the kernel's; tags below that, four for each disk
all_rows='
null;noop;false;none;
noop;noop;false;none;
deadline;deadline;false;none;
stream(deadline);stream(deadline);false;none;
coordinated;stream(deadline);true;none;
coordinated read_expire=5s;stream(deadline:read_expire=5s);true;none;
linux none;noop;false;none;12
linux mq-deadline;noop;false;mq-deadline;12
linux bfq;noop;false;bfq;12
linux kyber;noop;false;kyber;12'

only='' repeat=1 seconds=8 settle=2 smoke=no readers=2,4,8 tries=3
while [ $# -gt 0 ]; do
    case $1 in
    --rows) only=$2 && shift ;;
    --readers) readers=$2 && shift ;;
    --repeat) repeat=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --smoke) smoke=yes seconds=2 settle=1 readers=4 tries=1 only='noop,stream(deadline),coordinated' ;;
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
[[ $seconds =~ ^[1-8]$ ]] || fail "--seconds $seconds: 1 to 8"
[[ $repeat =~ ^[1-9][0-9]*$ ]] || fail "--repeat $repeat: a number from 1"
[[ $readers =~ ^[1-8](,[1-8])*$ ]] || fail "--readers $readers: numbers from 1 to 8, with commas between them"
begin fio jq python3

profile=barracuda-7200.10-160
disk_bytes=160041885696 # of that drive
disks=(a b c)
chunk=65536
bytes=$((disk_bytes / chunk * chunk * ${#disks[@]}))
# More than one reader has in the whole time, which each run checks; check_apart permits 1.5 GB.
size=$(((seconds + settle) * 145000000))

# Splits the image of the array into the stores of its disks.
split_image() {
    python3 - "$work/image" $chunk $disk_bytes "${disks[@]/#/$work/store-}" <<'PYTHON'
import errno, os, sys

image, chunk, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
source = os.open(image, os.O_RDONLY)
stores = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) for path in sys.argv[4:]]
for store in stores:
    os.ftruncate(store, size)
at = 0
while True:
    try:
        at = os.lseek(source, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        break
    end = os.lseek(source, at, os.SEEK_HOLE)
    for number in range(at // chunk, -(-end // chunk)):
        data = os.pread(source, chunk, number * chunk)
        if os.pwrite(stores[number % len(stores)], data, number // len(stores) * chunk) != len(data):
            sys.exit("short write")
    at = end
PYTHON
    rm "$work/image"
}

# configure_array SCHEDULER COORDINATE NAME: the row null has null devices.
configure_array() {
    local disk behind
    for disk in "${disks[@]}"; do
        behind=$(printf 'emulate = "%s"\nstore = "%s"\nseed = %d' "$profile" "$work/store-$disk" "'$disk")
        [ "$3" != null ] || behind=$(printf 'device = "null"\nsize = "%dB"' $disk_bytes)
        printf '[[disk]]\nname = "%s"\nscheduler = "%s"\ndepth = 1\n%s\n\n' "$disk" "$1" "$behind"
    done >"$work/serve.toml"
    cat >>"$work/serve.toml" <<TOML
[[array]]
name = "array"
members = [$(printf '"%s", ' "${disks[@]}")]
chunk = "${chunk}B"
coordinate = $2

[listen]
control = "unix:$control"
TOML
}

# run_row READERS SCHEDULER COORDINATE KERNEL TAGS NAME: "MB/s least most p99.9_ms late_percent"
run_row() {
    local before=${#undos[@]} k places=() log=()
    [ $smoke = no ] || log=(--log "$logs/events")
    configure_array "$2" "$3" "$6"
    attach_loop "${log[@]}"
    read_ahead_is $((2 * ${#disks[@]} * chunk / 1024))
    kernel_scheduler "$4" "$5"
    if [ "$6" = null ]; then
        for ((k = 0; k < $1; k++)); do places+=("$loop@$((k * 50))G"); done
        cold
        measured="$(read_files 40G "${places[@]}") - -"
    else
        fs_up
        for ((k = 0; k < $1; k++)); do places+=("$work/fs/${files[k]}"); done
        cold
        measured="$(read_files $size "${places[@]}") $(lateness)"
        awk -v size=$size -v time=$((seconds + settle)) '{ exit $3 * 1e6 * time > size }' <<<"$measured" ||
            fail "a reader has come to its file's end: $measured"
    fi
    undo_to "$before"
    detach
    [ $smoke = no ] || "$headtime" sim replay-log "$logs/events" >&2 || fail 'the log does not replay'
    rm -f "$logs/events"
}

# Not in $work, which may be below /dev: Headtime makes no files there.
logs=$(mktemp -d)
on_exit rm -r "$logs"
directories=(a b c d e f g h)
most=$(tr ',' '\n' <<<"$readers" | sort -n | tail -n 1)
directories=("${directories[@]:0:most}")
files=("${directories[@]/%//file}")
make_image "$work/image" "${directories[@]}"
make_files "$work/image" $size "${files[@]}"
close_image
split_image

say "$machine; commit $commit; load $(cut -d' ' -f1-3 /proc/loadavg)"
results=$work/results
for count in ${readers//,/ }; do
    # Rows take turns, so that what else runs on the machine falls on all.
    for ((run = 0; run < repeat; run++)); do
        while IFS=';' read -r name scheduler coordinate kernel tags; do
            [ -n "$name" ] || continue
            case ",$only," in ,, | *",$name,"*) ;; *) continue ;; esac
            for ((try = 0; try < tries; try++)); do
                run_row "$count" "$scheduler" "$coordinate" "$kernel" "$tags" "$name" </dev/null
                say "$name, $count readers: $measured"
                if awk '{ exit $5 >= 1 }' <<<"$measured"; then break; fi
                say 'it does not count: 1 % of the completions or more were late'
            done
            echo "$name, $count readers;${measured// /;}" >>"$results"
        done <<<"$all_rows"
    done
done
[ -s "$results" ] || fail "no such rows; --list prints them"
print_table "$results" 1

if [ $smoke = yes ]; then
    status=0
    awk -F';' '
        $1 ~ /^noop/ { noop = $2 }
        $1 ~ /^coordinated/ { coordinated = $2 }
        $6 >= 1 { late = 1 }
        END {
            if (coordinated >= 1.5 * noop) exit 0
            print "coordinated has less than 1.5 times the throughput of noop" (late ? ", on a machine that was too busy" : "")
            exit late ? '$skipped' : 1
        }' "$results" >&2 || status=$?
    [ $status = 0 ] || exit $status
fi
say "took $SECONDS s"

#!/usr/bin/env bash
# What a request costs without a disk: 4 KiB random reads over a unix socket from a null device behind
# Headtime's NBD server, from `nbdkit memory` and from `qemu-nbd` on tmpfs, in one run.
#
#   benches/live/cost.sh [-s SECONDS] [-r REPEATS] [-k] [SERVER]..     (5, 3, all of them)
#
# SERVER is headtime, nbdkit or qemu. -k keeps fio's results and names their folder. Prints a table in
# Markdown: medians over the repeats, which take turns so that a busy moment of the machine meets all
# servers. CPU is that of the server's process, user and system, per request. NBD_NULL names a built
# example `nbd_null`, which is built otherwise. Needs fio with its nbd engine, nbdkit and qemu-nbd.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=5 repeats=3 keep=no
while getopts s:r:k option; do
    case $option in
        s) seconds=$OPTARG ;;
        r) repeats=$OPTARG ;;
        k) keep=yes ;;
        *) sed -n '5,6s/^# *//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
servers=("$@")
[ ${#servers[@]} -gt 0 ] || servers=(headtime nbdkit qemu)
size_gib=1

for tool in fio nbdkit qemu-nbd; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 1; }
done
null=${NBD_NULL:-}
if [ -z "$null" ]; then
    cargo build --quiet --profile dist --package headtime-serve --example nbd_null
    null=${CARGO_TARGET_DIR:-target}/dist/examples/nbd_null
fi

work=$(mktemp -d)
disk=$(mktemp -p /dev/shm nbd-cost.XXXXXX)
pids=()
clean() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -f "$disk"
    if [ $keep = yes ]; then echo "results of fio: $work" >&2; else rm -rf "$work"; fi
}
trap clean EXIT

declare -A pid
start() {
    local socket=$work/$1.sock
    case $1 in
        headtime) "$null" --socket "$socket" --size-gib $size_gib & ;;
        nbdkit) nbdkit --foreground --threads 64 --unix "$socket" memory size=${size_gib}G & ;;
        qemu)
            truncate -s ${size_gib}G "$disk"
            qemu-nbd --persistent --shared 4 --format raw --socket "$socket" "$disk" & ;;
        *) echo "no server $1" >&2; exit 2 ;;
    esac
    pid[$1]=$!
    pids+=($!)
    for _ in $(seq 100); do
        if [ -S "$socket" ]; then return; fi
        sleep 0.05
    done
    echo "$1 does not start" >&2
    exit 1
}

# Ticks of the clock that a process has used, its name left out.
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }

measure() { # SERVER DEPTH ROUND
    local result=$work/$1.$2.$3 before after
    before=$(ticks "${pid[$1]}")
    fio --name=cost --ioengine=nbd --uri="nbd+unix:///?socket=$work/$1.sock" \
        --rw=randread --bs=4k --iodepth="$2" --size=${size_gib}g --time_based \
        --runtime="$seconds" --randseed="$3" --percentile_list=50:99 \
        --output-format=terse --terse-version=3 --output="$result"
    after=$(ticks "${pid[$1]}")
    # Requests a second, p50 and p99 in us (of completion), CPU per request in us.
    awk -F';' -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" '{
        sub(/.*=/, "", $18); sub(/.*=/, "", $19)
        requests = $6 / 4
        printf "%d %d %d %.2f\n", $8, $18, $19, ticks / hz * 1e6 / requests
    }' "$result" >>"$work/$1.$2"
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

for server in "${servers[@]}"; do start "$server"; done
for round in $(seq "$repeats"); do
    for depth in 1 32; do
        for server in "${servers[@]}"; do
            echo "round $round, depth $depth, $server" >&2
            measure "$server" $depth "$round"
        done
    done
done

echo "| server | depth | IOPS | p50 us | p99 us | CPU us per request |"
echo "|---|---:|---:|---:|---:|---:|"
for depth in 1 32; do
    for server in "${servers[@]}"; do
        row=()
        for column in 1 2 3 4; do
            row+=("$(cut -d' ' -f$column "$work/$server.$depth" | median)")
        done
        echo "| $server | $depth | ${row[0]} | ${row[1]} | ${row[2]} | ${row[3]} |"
    done
done

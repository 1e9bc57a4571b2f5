#!/usr/bin/env bash
# What a request costs without a disk: reads over a unix socket from the device `null` and from a file in memory behind Headtime, and from
# the same in nbdkit and qemu-nbd, in one run.
#
#   benches/live/cost.sh [--seconds 5] [--rounds 10] [--size 4k] [--rw randread] [--depths '1 32'] [SERVER]..
#
# SERVER is one of the first column, all by default. Prints medians over the rounds, in which the servers take turns. CPU is that of the
# server's process, user and system. qemu-nbd has no null device; its file counts for both.
source "$(dirname "$0")/../../tests/live/lib.sh"
seconds=5 rounds=10 size=4k rw=randread depths='1 32'
all=(null-noop 'null-stream(deadline)' null-nbdkit file-noop 'file-stream(deadline)' file-nbdkit file-qemu)
while [[ ${1:-} = --* ]]; do
    case $1 in
        --seconds) seconds=$2 ;;
        --rounds) rounds=$2 ;;
        --size) size=$2 ;;
        --rw) rw=$2 ;;
        --depths) depths=$2 ;;
        *) sed -n '5s/^# *//p' "$0" >&2; exit 2 ;;
    esac
    shift 2
done
[ $# -eq 0 ] || all=("$@")
need fio nbdkit qemu-nbd
bytes=268435456

memory=$(mktemp -d -p /dev/shm headtime-cost.XXXXXX)
on_exit rm -r "$memory"

declare -A pid
start() { # SERVER
    local to=$work/$1.sock disk=$memory/$1
    local device="device = \"$disk\"
direct = false"
    [[ $1 = null-* ]] || dd if=/dev/zero of="$disk" bs=1M count=$((bytes >> 20)) status=none
    case $1 in
        null-nbdkit) nbdkit --foreground --threads 64 --unix "$to" null size=$bytes & ;;
        file-nbdkit) nbdkit --foreground --threads 64 --unix "$to" file "$disk" & ;;
        file-qemu) qemu-nbd --persistent --shared 4 --format raw --socket "$to" "$disk" & ;;
        *-nbdkit | *-qemu) fail "there is no server $1" ;;
        *)
            [[ $1 = file-* ]] || device="device = \"null\"
size = \"256MiB\""
            configure "${1#*-}" 32 "$device" "nbd = \"unix:$to\""
            mv "$work/serve.toml" "$work/$1.toml"
            "$headtime" serve "$work/$1.toml" >"$work/server.out" 2>"$work/server.err" & ;;
    esac
    pid[$1]=$!
    on_exit end_now "${pid[$1]}"
    # `wait_for` ends if this process has ended.
    local server=${pid[$1]}
    wait_for 30 test -S "$to"
}
end_now() { kill "$1" 2>/dev/null || true; }
end() { # SERVER
    kill "${pid[$1]}"
    wait "${pid[$1]}" || fail "$1 ended with $?"
}

# Ticks of the clock that a process has used, its name left out.
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }

measure() { # SERVER DEPTH ROUND
    local before
    before=$(ticks "${pid[$1]}")
    fio --name=cost --ioengine=nbd --uri="nbd+unix:///?socket=$work/$1.sock" --rw="$rw" --bs="$size" --iodepth="$2" --size=$bytes \
        --time_based --runtime="$seconds" --randseed="$3" --percentile_list=50:99 \
        --output-format=terse --terse-version=3 --output="$work/fio" || fail "fio: $(cat "$work/fio")"
    # Terse fields: KiB, IOPS and percentiles in us of reads, or of writes.
    awk -F';' -v ticks=$(($(ticks "${pid[$1]}") - before)) -v hz="$(getconf CLK_TCK)" -v kib="$(numfmt --from=iec "${size^^}" --to-unit=1024)" '{
        at = $6 > 0 ? 0 : 41
        sub(/.*=/, "", $(18 + at)); sub(/.*=/, "", $(19 + at))
        printf "%d %d %d %.2f\n", $(8 + at), $(18 + at), $(19 + at), ticks / hz * 1e6 / ($(6 + at) / kib)
    }' "$work/fio" >>"$work/$1.$2"
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

for each in "${all[@]}"; do start "$each"; done
for round in $(seq "$rounds"); do
    say "round $round"
    for depth in $depths; do
        for each in "${all[@]}"; do measure "$each" "$depth" "$round"; done
    done
done
for each in "${all[@]}"; do end "$each"; done

echo "| server ($rw, $size) | depth | IOPS | p50 us | p99 us | CPU us per request |"
echo "|---|---:|---:|---:|---:|---:|"
for depth in $depths; do
    for each in "${all[@]}"; do
        row=()
        for column in 1 2 3 4; do
            row+=("$(cut -d' ' -f$column "$work/$each.$depth" | median)")
        done
        echo "| $each | $depth | ${row[0]} | ${row[1]} | ${row[2]} | ${row[3]} |"
    done
done

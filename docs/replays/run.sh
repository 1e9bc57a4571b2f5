#!/usr/bin/env bash
# Replays the traces of HEADTIME_DATA and writes tables and pictures into target/replays. Takes about
# a minute. HEADTIME names a binary to use in place of one that is built.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${HEADTIME_DATA:-../shared/data}/traces
[ -d "$data" ] || { echo "no traces in $data; set HEADTIME_DATA" >&2; exit 1; }
if [ -z "${HEADTIME:-}" ]; then
    cargo build --release --quiet
    HEADTIME=${CARGO_TARGET_DIR:-target}/release/headtime
fi
headtime=$(realpath "$HEADTIME")
out=$PWD/target/replays
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
schedulers=noop,deadline,clook,sstf,sptf
waiting=noop,deadline,anticipatory,cfq,stream,clairvoyant
all=noop,deadline,mq-deadline,clook,sstf,sptf,sptf-sw60,anticipatory,nise,cfq,bfq,stream,clairvoyant

{
    echo '# Tables'
    echo
    echo "Written by \`docs/replays/run.sh\`."
} >"$out/tables.md"

# replay NAME DIR TRACE PROFILE SCHEDULERS OPTIONS...: a table, and a picture unless "$picture" is no
picture=yes
replay() {
    local name=$1 dir=$2 trace=$3 profile=$4 list=$5 plot=
    shift 5
    if [ $picture = yes ]; then plot=$out/$name.svg; fi
    echo "$name" >&2
    {
        printf '\n## %s\n\n' "$name"
        printf '```console\n$ headtime trace replay %s --profile %s %s --scheduler %s\n' \
            "$trace" "$profile" "$*" "$list"
        (cd "$dir" && "$headtime" trace replay "$trace" --profile "$profile" "$@" \
            --scheduler "$list" ${plot:+--plot "$plot"} 2>/dev/null)
        printf '```\n'
        if [ -n "$plot" ]; then printf '\n![%s](%s.svg)\n' "$name" "$name"; fi
    } >>"$out/tables.md"
}

# per_device TRACE: the trace as csv, in which each device is a process that asks again as soon as
# its request is finished: its completion is the arrival of the device's next one, since the trace
# has none.
per_device() {
    "$headtime" trace convert "$data/$1.trace" "$work/all.csv" 2>/dev/null
    awk -F, -v OFS=, '
        NR == 1 { print; next }
        { line[++n] = $0 }
        END {
            for (i = n; i > 0; i--) {
                split(line[i], f, ",")
                done = f[3] in next_arrival ? next_arrival[f[3]] : f[1]
                next_arrival[f[3]] = f[1]
                line[i] = f[1] OFS done OFS f[3] OFS f[4] OFS f[5] OFS f[6] OFS f[3] + 1 OFS f[8]
            }
            for (i = 1; i <= n; i++) print line[i]
        }' "$work/all.csv" >"$work/$1-per-device.csv"
}

# five_drives: the requests that were issued to five real drives for validation, one at a time,
# with the response times measured and the pauses kept: five processes with think times.
five_drives() {
    local drive process=0
    echo arrival_ns,completion_ns,device,op,address_sectors,size_sectors,process,flags
    for drive in atlas10k cheetah9LP barracuda ibm18es hp_c2247a; do
        process=$((process + 1))
        awk -v OFS=, -v process=$process '{
            done = now + int($5 * 1000 + 0.5)
            printf "%.0f,%.0f,%d,%s,%d,%d,%d,0\n", now, done, process - 1,
                $1 == "R" ? "read" : "write", $3, $4, process
            now = done + int($6 * 1000 + 0.5)
        }' "$data/../disksim-valid/$drive.trace"
    done
}

for profile in atlas10k exos-x18; do
    closed="--closed 32 --depth 1 --fit wrap"
    replay "wsrch-$profile" "$data" wsrch-small.trace "$profile" $schedulers --device 0,1,2 $closed
    replay "tpcc-$profile" "$data" tpcc-small.trace "$profile" $schedulers $closed
    replay "disksim-ascii-$profile" "$data" disksim-ascii.trace "$profile" $schedulers $closed
    replay "wsrch-open-$profile" "$data" wsrch-small.trace "$profile" $schedulers --device 0,1,2 \
        --open --speed 0.5 --depth 1 --fit wrap
done

picture=no
replay disksim-ascii-array "$data" disksim-ascii.trace wd5000aaks $all --closed 32 --depth 1 --fit wrap \
    --set array.members=5 --set 'array.coordinate=[false,true]'

# A trace as a program with a goal, beside a program that reads a file again and again.
ln -s "$data/wsrch-small.trace" "$work/wsrch-small.trace"
cat >"$work/wsrch-goal.toml" <<'SCENARIO'
title = "A search engine with a goal, beside a scan"
schedulers = "cfq"
drive.profile = "wd5000aaks"

[engine]
depth = 2
gate = ["depth", "average", "windows"]

[[program]]
name = "search"
benchmark = "replay"
trace = "wsrch-small.trace"
goal = "1.5x"

[[program]]
name = "scan"
benchmark = "backup"
start = "200GB"
SCENARIO
{
    printf '\n## wsrch-goal\n\n```toml\n'
    cat "$work/wsrch-goal.toml"
    printf '```\n\n```console\n$ headtime sim run wsrch-goal.toml\n'
    (cd "$work" && "$headtime" sim run wsrch-goal.toml 2>/dev/null)
    printf '```\n'
} >>"$out/tables.md"

for trace in wsrch-small tpcc-small disksim-ascii; do
    per_device $trace
done
five_drives >"$work/five-drives.csv"
for trace in wsrch-small-per-device tpcc-small-per-device disksim-ascii-per-device five-drives; do
    for hidden in true false; do
        name=$trace-$([ $hidden = true ] && echo hidden || echo known)
        picture=$([ "$name" = disksim-ascii-per-device-hidden ] && echo yes || echo no)
        replay "$name" "$work" $trace.csv wd5000aaks $waiting --closed-per-process --fit wrap \
            --set engine.hide_processes=$hidden
    done
done

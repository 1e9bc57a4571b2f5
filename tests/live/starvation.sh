#!/usr/bin/env bash
# A sequential and a random reader, both fio's, on two exports of one emulated disk that takes 32 commands at once: a wd5000aaks that stays
# with a stream for up to 2 s. Without a gate the random reader starves in the drive; behind `rsd:age_th=30`
# and `head-time` the reader has as many reads a second as `sim run` says, within 10 %, and the server tells who starved.
#
# The load is such that the time which a request takes on its way does not matter: in the simulator 0 or 0.3 ms for it make no difference, and
# six seeds are within 2 %. A run in which the drive itself was late is repeated, RUNS (3) times in all. MEASURE (12) is how many seconds a run
# is measured, after one second.
source "$(dirname "$0")/lib.sh"
need fio nbdinfo awk jq
# Who is permitted to goes ahead of what else the machine does.
renice -n -15 -p $$ >/dev/null 2>&1 || true

measure=${MEASURE:-12} settle=1

# live GATE: the random reader's reads a second in $iops, the scrub's MB/s in $mbs, and the server's status in $work/status.json.
live() {
    configure noop 32 "emulate = \"wd5000aaks\"
override.queue.stream_cap = \"2s\"
store = \"memory\"
gate = \"$1\"
[[disk.export]]
name = \"disk0\"
class = \"real-time\"
[[disk.export]]
name = \"scrub\"
class = \"idle\"" "nbd = \"unix:$socket\"
control = \"unix:$control\""
    serve
    # One has 1 MiB under way, so that a late client leaves no gap in its stream. The other waits for each of its reads and thinks for
    # 2 ms: without that it would depend on 0.1 ms whether its next read is in time for the drive's next choice. It is never alone: it
    # begins later and ends earlier.
    fio --ioengine=nbd --size=100% --time_based --ramp_time="$settle" --output-format=terse --terse-version=3 \
        --name=scrub --runtime=$((measure + 3)) --uri="$(uri scrub)" --rw=read --bs=128k --iodepth=8 \
        --name=reader --runtime="$measure" --startdelay=1 --uri="$(uri)" --rw=randread --bs=4k --iodepth=1 --thinktime=2ms \
        --norandommap --random_generator=tausworthe64 --randseed=11 \
        >"$work/fio.out" 2>"$work/fio.err" || fail "fio: $(cat "$work/fio.out" "$work/fio.err")"
    "$headtime" control "$control" status --json >"$work/status.json"
    stop
    # Terse fields: 3 name, 5 error, 6 KiB read, 9 ms.
    awk -F';' '$1 == 3 && $5 == 0 && $9 > 0 { kib[$3] = $6 / $9 * 1000; n++ }
        END { if (n != 2) exit 1; printf "%.1f %.2f\n", kib["scrub"] * 1.024 / 1000, kib["reader"] / 4 }' "$work/fio.out" >"$work/rates" ||
        fail "fio says $(cat "$work/fio.out")"
    read -r mbs iops <"$work/rates"
}

# compare GATE: a live run in which the drive was in time, and the simulated runs.
compare() {
    punctual "$1" live "$1"
    simulated "$1"
    echo "$1: $iops reads/s beside $mbs MB/s; simulated $sim_iops and $sim_mbs"
}

# simulated GATE: the same in $sim_iops and $sim_mbs, means of five seeds.
simulated() {
    cat >"$work/sim.toml" <<TOML
schedulers = "noop"
drive.profile = "wd5000aaks"
drive.override.queue.stream_cap = "2s"
engine.depth = 32
engine.gate = "$1"
run.warm_up = "${settle}s"
run.duration = "$((settle + measure))s"
run.repeats = 5

[[workload]]
name = "scrub"
class = "idle"
program = 1
sequential_share = 1.0
size = "128KiB"
outstanding = 8
first = "beginning"

[[workload]]
name = "reader"
class = "real-time"
program = 2
think = "2ms"
TOML
    "$headtime" sim run "$work/sim.toml" --format csv >"$work/sim.csv"
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == "scrub" { mbs = $at["throughput_mb_s"] }
        $1 == "reader" { iops = $at["iops"] }
        END { printf "%.1f %.2f\n", mbs, iops }' "$work/sim.csv" >"$work/rates"
    read -r sim_mbs sim_iops <"$work/rates"
}

# holds WHAT CONDITION: an expression of awk.
holds() { awk "BEGIN { exit !($2) }" || fail "$1: not $2"; }
# tells CONDITION: of the disk in the server's status.
tells() { jq -e ".disks[0] | $1" "$work/status.json" >/dev/null || fail "not $1: $(jq -c '.disks[0] | .gating, .overtaken' "$work/status.json")"; }

compare depth
starved=$iops
tells '.gating.plugged_s == 0'

compare rsd:age_th=30
holds 'as simulated within 10 %' "$iops > 0.9 * $sim_iops && $iops < 1.1 * $sim_iops"
holds 'starved without a gate' "$starved < 0.3 * $iops"
tells '.gating.plugged_s > 0.1 and .gating.starved["real-time"] > 20 and .gating.starved_s["real-time"] > 0.1 and .gating.refused.idle > 20'
# No command is overtaken more often than that: age_th + depth - 1.
tells '.overtaken["real-time"].count > 20 and .overtaken["real-time"].max <= 61'

compare head-time
holds 'as simulated within 10 %' "$iops > 0.9 * $sim_iops && $iops < 1.1 * $sim_iops && $mbs > 0.9 * $sim_mbs"
holds 'starved without a gate' "$starved < 0.3 * $iops"
echo 'starvation: cured as simulated'

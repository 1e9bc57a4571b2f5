#!/usr/bin/env bash
# Six random readers beside a scrub with a date, on an emulated wd5000aaks that serves one command at a time. The scrub keeps the date, says
# so, and leaves the readers as many reads a second as `sim run` says, within 10 %.
#
# The disk's first GiB is scrubbed within DATE (20) seconds. A run in which the drive itself was late is repeated, RUNS (3) times in all.
source "$(dirname "$0")/lib.sh"
need fio nbdinfo awk jq
renice -n -15 -p $$ >/dev/null 2>&1 || true

date=${DATE:-20}

beside_a_scrub() {
    configure deadline 1 "emulate = \"wd5000aaks\"
store = \"memory\"" "nbd = \"unix:$socket\"
control = \"unix:$control\""
    serve
    fio --ioengine=nbd --uri="$(uri)" --size=1g --rw=randread --bs=4k --iodepth=1 --numjobs=6 --group_reporting --time_based \
        --runtime="$date" --norandommap --random_generator=tausworthe64 --randseed=11 --output-format=json --output="$work/fio.json" \
        --name=clients >"$work/fio.err" 2>&1 &
    clients=$!
    "$headtime" scrub "$control" disk0 --range 0-1GiB --block 8KiB --finish-within "${date}s" >"$work/scrub.out" 2>&1 ||
        fail "the scrub ended with $?: $(cat "$work/scrub.out")"
    "$headtime" scrub "$control" disk0 status --format json >"$work/scrub.json"
    wait "$clients" || fail "fio: $(cat "$work/fio.err")"
    "$headtime" control "$control" status --json >"$work/status.json"
    stop
}

punctual date beside_a_scrub
iops=$(sed -n '/^{/,$p' "$work/fio.json" | jq '.jobs[0].read.iops')

cat >"$work/sim.toml" <<TOML
schedulers = "deadline"
drive.profile = "wd5000aaks"
engine.depth = 1
workload = { processes = 6, size = "4KiB", range = "0B..1GiB" }
freeblock = { block = "8KiB", range = "0B..1GiB", finish_within = "${date}s" }
run = { duration = "${date}s", repeats = 5 }
TOML
"$headtime" sim run "$work/sim.toml" --format json >"$work/sim.json"
simulated=$(jq '[.runs[].iops] | add / length' "$work/sim.json")
echo "date: $iops reads/s beside a scrub within $date s; simulated $simulated"
awk "BEGIN { exit !($iops > 0.9 * $simulated && $iops < 1.1 * $simulated) }" || fail "$iops reads/s live, $simulated simulated"
jq -e '.left == 0 and .promise.verdict == "holds" and .read.outright > 0' "$work/scrub.json" >/dev/null || fail "$(cat "$work/scrub.json")"

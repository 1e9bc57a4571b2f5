#!/usr/bin/env bash
# A disk that is known by probing it through its own NBD socket alone: an emulated drive is probed in real time, then served again under
# position-aware schedulers that believe what was learned, under random reads of 4 KiB, against `sim run` of the same. Requests a second
# have to agree within 3 %. Prints a table; exits 1 if a row is out. PROFILES, SECONDS_EACH (60) and CLIENTS (16) change it. Probing takes as long
# as on the real drive: four minutes for an Atlas 10K, 25 for an Exos X18. The machine must not be busy.
source "$(dirname "$0")/../../tests/live/lib.sh"
need fio nbdinfo awk jq

read -ra profiles <<<"${PROFILES:-atlas10k cheetah9lp exos-x18}"
seconds=${SECONDS_EACH:-60}
clients=${CLIENTS:-16}

printf '| drive | probed in | scheduler, issue | requests a second, live | simulated | apart | within 50 us, live, %% |\n|---|---|---|---|---|---|---|\n'
status=0
for profile in "${profiles[@]}"; do
    # One command at a time is what the profiles of older drives say; two have to be there. The simulator is told the same.
    drive="emulate = \"$profile\"
store = \"memory\"
override.queue.depth = 32"
    configure noop 32 "$drive"
    serve
    began=$SECONDS
    probed=0
    "$headtime" drive probe "$socket" --time "${TIME:-40m}" --out "$work/learned.toml" >"$work/probe.out" 2>&1 || probed=$?
    took=$((SECONDS - began))
    stop
    [ -s "$work/learned.toml" ] || fail "$profile was not learned ($probed): $(tail -n 5 "$work/probe.out")"
    cp "$work/learned.toml" "${KEEP:-$work}/$profile.learned.toml" 2>/dev/null || true
    for issue in at-once late; do
        configure sptf 2 "$drive
belief = \"$work/learned.toml\"
issue = \"$issue\"" "nbd = \"unix:$socket\"
control = \"unix:$control\""
        serve
        fio --name=job --ioengine=nbd --uri="$(uri)" --iodepth="$clients" --rw=randread --bs=4k --norandommap --random_generator=tausworthe64 \
            --size=100% --randseed=11 --time_based --ramp_time=5 --runtime="$seconds" --output-format=json >"$work/fio.json" 2>"$work/fio.err" ||
            fail "fio: $(cat "$work/fio.err")"
        live=$(jq '.jobs[0].read.iops' "$work/fio.json")
        "$headtime" control "$control" status >"$work/status.json"
        within=$(jq '.disks[0].predictions | 100 * .within_50us / .commands' "$work/status.json")
        stop
        cat >"$work/sim.toml" <<TOML
schedulers = "sptf"
drive.profile = "$profile"
drive.override.queue.depth = 32
drive.belief = "$work/learned.toml"
engine = { depth = 2, issue = "$issue" }
run = { warm_up = "5s", duration = "605s" }

[[workload]]
outstanding = $clients
size = "4KiB"
TOML
        simulated=$("$headtime" sim run "$work/sim.toml" --format json | jq '.runs[0].iops')
        awk -v drive="$profile" -v took="$took" -v issue="$issue" -v live="$live" -v sim="$simulated" -v within="$within" 'BEGIN {
            apart = 100 * (live / sim - 1)
            bad = apart > 3 || apart < -3
            printf "| %s | %d:%02d min | sptf, 2, %s | %.1f | %.1f | %+.1f %% | %.1f |%s\n", drive, took / 60, took % 60, issue, live, sim,
                apart, within, bad ? " OUT" : ""
            exit bad
        }' || status=1
    done
done
exit "$status"

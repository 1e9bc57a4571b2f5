#!/usr/bin/env bash
# The emulated drive in real time against `sim run` of the same job: direct reads over NBD, mean and 95th percentile of the response time,
# which have to agree within 3 % or 0.25 ms. The simulator is given the latency of the path, measured before a null device. Prints a
# table; exits 1 if a point is out. REQUESTS (5000) for each point, PROFILES, DEPTHS and JOBS narrow it; the whole takes ten minutes.
source "$(dirname "$0")/../../tests/live/lib.sh"
need fio nbdinfo awk sort

requests=${REQUESTS:-5000}
read -ra profiles <<<"${PROFILES:-wd5000aaks atlas10k}"
read -ra depths <<<"${DEPTHS:-1 8 31}"
read -ra jobs <<<"${JOBS:-random sequential}"

# Response times of a job in ns, one a line, in order of size.
latencies() { # job, depth, requests
    local options
    case $1 in
    random) options=(--rw=randread --bs=4k --norandommap --random_generator=tausworthe64) ;;
    sequential) options=(--rw=read --bs=128k) ;;
    esac
    rm -f "$work"/lat_lat*
    fio --name=job --ioengine=nbd --uri="$(uri)" --iodepth="$2" --number_ios="$3" --size=100% --randseed=11 "${options[@]}" \
        --write_lat_log="$work/lat" --log_max_value=0 --minimal >"$work/fio.out" 2>&1 || fail "fio: $(cat "$work/fio.out")"
    cut -d, -f2 "$work"/lat_lat.1.log | sort -n
}

mean() { awk '{ sum += $1 } END { printf "%.0f\n", sum / NR }'; }
percentile() { awk -v share="$1" '{ value[NR] = $1 } END { at = int(NR * share + 0.9999); print value[at < 1 ? 1 : at] }'; }

configure noop 31 'device = "null"
size = "500GB"'
serve
path=$(latencies random 1 20000 | mean)
stop
printf 'The path: %s us for 4 KiB before a null device, depth 1, mean of 20000.\n\n' "$((path / 1000))"

printf '| drive | job | depth | mean ms, live | simulated | apart | p95 ms, live | simulated | apart | late us: p50, p99, max |\n|---|---|---|---|---|---|---|---|---|---|\n'
# Both are told that the drive takes 32 commands: the profile of the atlas10k has one, as it was measured so.
status=0
for profile in "${profiles[@]}"; do
    for job in "${jobs[@]}"; do
        for depth in "${depths[@]}"; do
            configure noop "$depth" "emulate = \"$profile\"
store = \"memory\"
override.queue.depth = 32"
            serve
            latencies "$job" "$depth" "$requests" >"$work/live.txt"
            stop
            late=$(sed -n 's/.*lateness p50 \([0-9.]*\), p99 \([0-9.]*\),.*max \([0-9.]*\) us.*/\1, \2, \3/p' "$work/server.err")
            case $job in
            random) access='size = "4KiB"' ;;
            sequential) access='size = "128KiB"
sequential_share = 1.0
first = "beginning"' ;;
            esac
            cat >"$work/sim.toml" <<TOML
schedulers = "noop"
drive.profile = "$profile"
drive.override.queue.depth = 32
engine.depth = $depth
run.requests = $requests

[[workload]]
outstanding = $depth
think = "${path}ns"
$access
TOML
            "$headtime" sim run "$work/sim.toml" --format csv >"$work/sim.csv"
            awk -F, -v path="$path" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at["response_mean_ms"] + path / 1e6, $at["response_p95_ms"] + path / 1e6 }' "$work/sim.csv" >"$work/sim.txt"
            read -r sim_mean sim_p95 <"$work/sim.txt"
            awk -v drive="$profile" -v job="$job" -v depth="$depth" -v late="$late" \
                -v mean="$(mean <"$work/live.txt")" -v p95="$(percentile 0.95 <"$work/live.txt")" -v sim_mean="$sim_mean" -v sim_p95="$sim_p95" '
                function apart(live, sim) { return (live - sim > 0 ? live - sim : sim - live) }
                function off(live, sim) { return apart(live, sim) > 0.25 && apart(live, sim) > 0.03 * sim }
                BEGIN {
                    mean /= 1e6; p95 /= 1e6
                    bad = off(mean, sim_mean) || off(p95, sim_p95)
                    printf "| %s | %s | %s | %.3f | %.3f | %.1f %% | %.3f | %.3f | %.1f %% | %s |%s\n", drive, job, depth, mean, sim_mean,
                        100 * (mean / sim_mean - 1), p95, sim_p95, 100 * (p95 / sim_p95 - 1), late, bad ? " OUT" : ""
                    exit bad
                }' || status=1
        done
    done
done
exit "$status"

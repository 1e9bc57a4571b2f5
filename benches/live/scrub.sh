#!/usr/bin/env bash
# A scrub of an emulated drive in real time, in the gaps of ten clients who always ask, against `sim run` of the same job: what the clients
# lose by it, what it reads, and how well the server predicts the drive. Direct reads of 8 KiB over NBD; idle time is not used, and
# there is none. Each live number has to agree with the simulated one within 10 %; that of commands which did not end
# within 50 us of their prediction within 10 % and twice what so few vary by in both. The simulator is given the latency of the path, measured
# before a null device. Prints a table; exits 1 if a number is out. RUN_S (60) for each run, PROFILES and SCHEDULERS narrow it.
# SEEK_SD (20us) is by how much seeks vary: with 200us and RUN_S=240 so many predictions fail that a difference of 10 % can be seen.
source "$(dirname "$0")/../../tests/live/lib.sh"
need fio nbdinfo jq awk sort

run_s=${RUN_S:-60}
seek_sd=${SEEK_SD:-20us}
read -ra profiles <<<"${PROFILES:-atlas10k exos-x18}"
read -ra schedulers <<<"${SCHEDULERS:-sptf-sw60 sstf}"

# Ten clients' response times in ns, one a line, in order of size.
clients() { # seconds
    rm -f "$work"/lat_lat*
    fio --name=job --ioengine=nbd --uri="$(uri)" --numjobs=10 --thread --iodepth=1 --time_based --runtime="$1" --size=100% --randseed=11 \
        --rw=randread --bs=8k --norandommap --random_generator=tausworthe64 \
        --write_lat_log="$work/lat" --log_max_value=0 --minimal >"$work/fio.out" 2>&1 || fail "fio: $(cat "$work/fio.out")"
    cat "$work"/lat_lat.*.log | cut -d, -f2 | sort -n
}

# What is behind the disk, and of the simulated drive. It varies as a real one does, so that predictions err. The bus of 80 MB/s is that of
# the paper's host; the profile of the Atlas 10K has that of the machine on which it was measured.
override() { # profile
    printf 'override.noise = { seek_sd = "%s", seek_sd_relative = 0.01, overhead_sd = "30us", speed_ppm = 1000 }\n' "$seek_sd"
    case $1 in
    atlas10k) printf 'override.bus.interface_sector = "6.4us"\noverride.queue.depth = 16\noverride.queue.preseek = "at-media-end"\n' ;;
    esac
}

configure noop 2 'device = "null"
size = "500GB"'
serve
path=$(clients 5 | awk '{ sum += $1 } END { printf "%.0f", sum / NR }')
stop
printf 'The path: %s us for 8 KiB before a null device, ten clients.\n\n' "$((path / 1000))"

# simulate: a line of numbers, with a scan if there is a block: clients' requests a second, their mean and 99th percentile in ms, what is
# read in gaps in MB/s, and the percentage of commands that did not end within 50 us of their prediction.
simulate() {
    {
        cat <<TOML
schedulers = "$scheduler"
engine.depth = 2
engine.merge = false
run.duration = "${run_s}s"

[drive]
profile = "$profile"
$(override "$profile")

[[workload]]
processes = 10
size = "8KiB"
think = "${path}ns"
TOML
        [ -z "$block" ] || printf '\n[freeblock]\nblock = "%s"\n' "$block"
    } >"$work/sim.toml"
    "$headtime" sim run "$work/sim.toml" --format json |
        jq -r --argjson path "$path" '.runs[0] | [.iops, .response_ms.mean + $path / 1e6, .response_ms.p99 + $path / 1e6,
            (.freeblock.free_mb_s // 0), (.predictions | if . then 100 - .within_50us else 0 end)] | @tsv'
}

# live: the same of a server, and how late the emulated drive was, in $work/late.
live() {
    configure "$scheduler" 2 "merge = false
emulate = \"$profile\"
store = \"memory\"
$(override "$profile")" "nbd = \"unix:$socket\"
control = \"unix:$control\""
    serve
    [ -z "$block" ] || "$headtime" scrub "$control" disk0 --no-wait --idle off --block "$block" >/dev/null
    clients "$run_s" >"$work/live.txt"
    "$headtime" control "$control" status --json >"$work/status.json"
    stop
    sed -n 's/.*lateness p50 \([0-9.]*\), p99 \([0-9.]*\),.*max \([0-9.]*\) us.*/\1, \2, \3/p' "$work/server.err" >"$work/late"
    awk -v s="$run_s" '{ sum += $1; value[NR] = $1 }
        END { at = int(NR * 0.99 + 0.9999); printf "%.3f\t%.3f\t%.3f\t", NR / s, sum / NR / 1e6, value[at] / 1e6 }' "$work/live.txt"
    jq -r --argjson s "$run_s" '.disks[0] | [((.scrub.read.in_gaps // 0) * (.scrub.block // 0) / 1e6 / $s),
        (.predictions | if . and .commands > 0 then 100 - 100 * .within_50us / .commands, .commands else 0, 0 end)] | @tsv' "$work/status.json"
}

status=0
printf '| drive | scheduler | block | | IOPS | mean ms | p99 ms | MB/s in gaps | beyond 50 us, %% | late us: p50, p99, max |\n'
printf '|---|---|---|---|---|---|---|---|---|---|\n'
for profile in "${profiles[@]}"; do
    case $profile in
    atlas10k) blocks=('' 8KiB) ;;
    *) blocks=('' 256KiB) ;;
    esac
    for scheduler in "${schedulers[@]}"; do
        for block in "${blocks[@]}"; do
            simulate >"$work/simulated"
            live >"$work/measured"
            paste "$work/simulated" "$work/measured" | awk -F'\t' -v late="$(cat "$work/late")" \
                -v row="| $profile | $scheduler | ${block:-no scrub} |" '{
                    printf "%s simulated | %.1f | %.2f | %.1f | %.3f | %.2f | |\n", row, $1, $2, $3, $4, $5
                    printf "%s live | %.1f | %.2f | %.1f | %.3f | %.2f | %s |\n", row, $6, $7, $8, $9, $10, late
                    printf "%s apart |", row
                    for (i = 1; i <= 4; i++) {
                        off = $i ? 100 * ($(i + 5) / $i - 1) : 0
                        bad = bad || off > 10 || off < -10
                        printf " %+.1f %% |", off
                    }
                    # Of n commands a share of p varies by the root of p (1 - p) / n.
                    off = $10 - $5
                    may = $5 / 10 + ($11 ? 283 * sqrt($5 / 100 * (1 - $5 / 100) / $11) : 0)
                    bad = bad || off > may + 0.05 || off < -may - 0.05
                    printf " %+.2f of %.2f |", off, may
                    print bad ? " OUT |" : " |"
                    exit bad
                }' || status=1
        done
    done
done
exit "$status"

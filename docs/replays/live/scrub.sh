#!/usr/bin/env bash
# Replays traces, ten requests at a time, alone and beside a scan in gaps, and prints a row for each drive and trace. Without arguments it
# takes the traces of this folder; with them, those files. Needs jq. HEADTIME names a binary to use in place of one that is built.
set -euo pipefail
traces=()
for trace in "$@"; do traces+=("$(realpath "$trace")"); done
cd "$(dirname "$0")/../../.."
if [ -z "${HEADTIME:-}" ]; then
    cargo build --release --quiet
    HEADTIME=${CARGO_TARGET_DIR:-target}/release/headtime
fi
headtime=$(realpath "$HEADTIME")
[ ${#traces[@]} -gt 0 ] || traces=("$PWD"/docs/replays/live/*.csv.gz)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An Atlas 10K as the freeblock study's host has it, and a drive of 18 TB as shipped, write cache on; each believed as another unit of it was
# learned by probing.
cat >"$work/atlas10k.toml" <<'END'
[drive]
profile = "atlas10k"
belief = "probed"
[drive.override]
bus.interface_sector = "6.4us"
cache.write_back = "off"
queue = { depth = 16, policy = "sptf", stream_cap = "0ns", preseek = "at-media-end" }
noise = { seek_sd = "20us", seek_sd_relative = 0.01, overhead_sd = "30us", speed_ppm = 1000 }
END
cat >"$work/exos-x18.toml" <<'END'
[drive]
profile = "exos-x18"
belief = "probed"
[drive.override]
noise.speed_ppm = 1000
END
for drive in atlas10k exos-x18; do
    cat >>"$work/$drive.toml" <<'END'
[engine]
depth = 2
merge = false
[trace]
file = "none"
replay = "closed"
outstanding = 10
fit = "wrap"
[run]
repeats = 3
END
    sed -i '1i schedulers = ["sptf-sw60"]' "$work/$drive.toml"
    cp "$work/$drive.toml" "$work/$drive-scan.toml"
done
printf '[freeblock]\n' >>"$work/atlas10k-scan.toml"
printf '[freeblock]\nblock = "64KiB"\n' >>"$work/exos-x18-scan.toml"

# SCENARIO TRACE [OPTION]..: requests a second, the 99th percentile in ms, and MB/s in gaps.
run() {
    "$headtime" sim run "$work/$1.toml" --set "trace.file=$2" --reproducible --format json "${@:3}" 2>/dev/null |
        jq -r '.runs[0] | [.iops, .response_ms.p99, (.freeblock.free_mb_s // 0)] | map(. * 10 | round / 10) | @tsv'
}

echo '| drive | trace | requests a second: without, with | `spared` | `ignored` | 99 %, ms: without, with | `spared` | `ignored` | MB/s in gaps | `spared` | `ignored` |'
echo '|---|---|---|---|---|---|---|---|---|---|---|'
for drive in atlas10k exos-x18; do
    for trace in "${traces[@]}"; do
        name=$(basename "$trace")
        read -r alone tail _ < <(run "$drive" "$trace")
        read -r rate late free < <(run "$drive-scan" "$trace")
        read -r spared spared_tail spared_free < <(run "$drive-scan" "$trace" --set freeblock.hits=spared)
        read -r ignored ignored_tail ignored_free < <(run "$drive-scan" "$trace" --set freeblock.hits=ignored)
        echo "| \`$drive\` | \`${name%%.*}\` | $alone, $rate | $spared | $ignored | $tail, $late | $spared_tail | $ignored_tail | $free | $spared_free | $ignored_free |"
    done
done

#!/usr/bin/env bash
# Replays recorded traces at several depths and under gates, and writes target/replays/gates.md. Takes about two minutes.
# HEADTIME names a binary to use in place of one that is built, HEADTIME_DATA the folder of the traces that are not here.
# Traces that are missing have no table.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${HEADTIME_DATA:-../shared/data}/traces
if [ -z "${HEADTIME:-}" ]; then
    cargo build --release --quiet
    HEADTIME=${CARGO_TARGET_DIR:-target}/release/headtime
fi
headtime=$(realpath "$HEADTIME")
out=$PWD/target/replays
mkdir -p "$out"
cd docs/replays
gates=depth=1,depth=8,rsd:age_th=8,rsd:age_th=30,rsd:age_th=90,rsd-priority:age_th=30:ranks=1/1,iolatency:best_effort=20ms

# The rows of a run in CSV, as those of a table. Columns go by their headings.
rows() {
    awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["origin"] != "all" { next }
        {
            gate = $at["gate"]
            name = gate ~ /^depth=/ ? "none" : "`" gate "`"
            depth = gate ~ /^depth=/ ? substr(gate, 7) : $at["depth"]
            printf "| %d | %s | %.1f | %.2f |", depth, name, $at["iops"], $at["throughput_mb_s"]
            n = split("p50 p99 p999 max", tail, " ")
            for (i = 1; i <= n; i++) printf " %.1f |", $at["response_" tail[i] "_ms"]
            printf "\n"
        }'
}

# table NAME FILE OPTIONS...: one trace onto one drive, whose own queue is taken with gate "depth".
table() {
    local name=$1 file=$2 deepest=$3
    shift 3
    if [ ! -e "$file" ]; then
        echo "$name: no trace, no table" >&2
        return
    fi
    echo "$name" >&2
    printf '\n## %s\n\n' "$name"
    printf '`headtime trace replay %s --scheduler noop --depth %s --gate %s,depth=%s %s`\n\n' \
        "$(basename "$file")" "$deepest" "$gates" "$deepest" "$*"
    echo '| depth | gate | requests a second | MB/s | p50, ms | p99, ms | p99.9, ms | longest, ms |'
    echo '|---|---|---|---|---|---|---|---|'
    "$headtime" trace replay "$file" --scheduler noop --depth "$deepest" --gate "$gates,depth=$deepest" "$@" \
        --format csv --reproducible 2>/dev/null | rows
}

{
    echo '# Gates and tails'
    echo
    echo "Written by \`docs/replays/gates.sh\`."
    for profile in st3400620as:31 exos-x18:32; do
        drive=${profile%:*} deepest=${profile#*:}
        options=(--profile "$drive" --fit wrap)
        table "wsrch on $drive" "$data/wsrch-small.trace" "$deepest" "${options[@]}" --device 0,1,2 --closed 64
        table "tpcc on $drive" "$data/tpcc-small.trace" "$deepest" "${options[@]}" --closed 64
        table "disksim-ascii on $drive" "$data/disksim-ascii.trace" "$deepest" "${options[@]}" --closed 64
    done
    for trace in live/*.csv.gz; do
        name=$(basename "$trace" .csv.gz)
        table "$name on wd5000aaks" "$trace" 32 --profile wd5000aaks --closed-per-process
    done
} >"$out/gates.md"

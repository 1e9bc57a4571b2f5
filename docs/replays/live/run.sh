#!/usr/bin/env bash
# Replays the traces of this folder under every scheduler and writes target/replays/live.md. Takes about ten seconds.
# HEADTIME names a binary to use in place of one that is built.
set -euo pipefail
cd "$(dirname "$0")/../../.."
if [ -z "${HEADTIME:-}" ]; then
    cargo build --release --quiet
    HEADTIME=${CARGO_TARGET_DIR:-target}/release/headtime
fi
headtime=$(realpath "$HEADTIME")
out=$PWD/target/replays
mkdir -p "$out"
cd docs/replays/live
schedulers=noop,deadline,mq-deadline,clook,sstf,sptf,sptf-sw60,anticipatory,cfq,stream,clairvoyant

{
    echo '# Tables'
    echo
    echo "Written by \`docs/replays/live/run.sh\`."
    for trace in *.csv.gz; do
        echo "${trace%.csv.gz}" >&2
        for hidden in true false; do
            options=(--profile wd5000aaks --closed-per-process --set engine.hide_processes=$hidden --scheduler $schedulers)
            printf '\n## %s, processes %s\n\n' "${trace%.csv.gz}" "$([ $hidden = true ] && echo hidden || echo known)"
            printf '```console\n$ headtime trace replay %s %s\n' "$trace" "${options[*]}"
            "$headtime" trace replay "$trace" "${options[@]}" 2>/dev/null
            printf '```\n'
        done
    done
} >"$out/live.md"

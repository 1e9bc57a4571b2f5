#!/usr/bin/env bash
# Compares the decisions of two builds: reports and logs of all scenarios in this folder, the logs of random runs, and OLD's logs replayed
# by NEW. Tags and what depends on a format (version, hash) are left out, and of a report the keys that only NEW has. Exit code 1 and the
# differences if there are any.
#
#   tests/same/run.sh OLD NEW [SEEDS]        OLD and NEW are `headtime` binaries; SEEDS (300) random runs, which
#                                           must draw the same: 0 if one of the two draws gates and the other does not
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { sed -n '2,8s/^# \?//p' "$0" >&2; exit 2; }
old=$(realpath "$1") new=$(realpath "$2") seeds=${3:-300}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A log without settings, and without what names a command: the tag of I and of C.
plain() { awk '$1 == "#" || /^headtime-log/ { next } $1 == "I" || $1 == "C" { $3 = "" } { print }' "$@"; }

failed=0
same() { # name, file of OLD, file of NEW
    if cmp -s "$2" "$3"; then
        printf '%-44s %9s lines  same\n' "$1" "$(wc -l <"$2")"
    else
        printf '%-44s %9s lines  DIFFERENT\n' "$1" "$(wc -l <"$2")"
        diff "$2" "$3" | head -n 6 || true
        failed=1
    fi
}

# A report's values with their places, but for those of keys that the report $2 has nowhere.
leaves() { # report, report of OLD
    jq -c --slurpfile old "$2" '
        def leaves: paths(type != "object" and type != "array");
        def key: map(strings) | join(".");
        ([$old[0] | [leaves | key] | unique[] | {(.): true}] | add) as $had
        | leaves as $path | select($had[$path | key]) | [$path, getpath($path)]' "$1"
}

report() { # binary, output, arguments
    local binary=$1 output=$2
    shift 2
    "$binary" sim run --reproducible --format json "$@" 2>/dev/null | jq 'del(.version, .scenario_hash)' >"$output"
}

for scenario in "$here"/*.toml; do
    name=$(basename "$scenario" .toml)
    for build in old new; do
        report "${!build}" "$work/$build.json" "$scenario"
    done
    for build in old new; do
        leaves "$work/$build.json" "$work/old.json" >"$work/$build.leaves"
    done
    same "$name: report" "$work/old.leaves" "$work/new.leaves"
    # A log is of one run: the first value of every list, and each scheduler.
    mapfile -t schedulers < <(jq -r '[.runs[].scheduler] | unique[]' "$work/old.json")
    while read -r key value; do set_first+=(--set "$key=$value"); done < <(
        jq -r '.runs[-1] | "drive.profile \(.drive)", "drive.firmware \(.firmware)", "engine.depth \(.depth)", "engine.merge \(.merge)", "engine.commit_ahead \(.commit_ahead)"' "$work/old.json")
    for scheduler in "${schedulers[@]}"; do
        for build in old new; do
            report "${!build}" /dev/null "$scenario" "${set_first[@]}" -s "$scheduler" --log "$work/$build.log"
            plain "$work/$build.log" >"$work/$build.plain"
        done
        same "$name, $scheduler: log" "$work/old.plain" "$work/new.plain"
        if ! "$new" sim replay-log "$work/old.log" >"$work/replay" 2>&1; then
            echo "OLD's log does not replay: $(tail -n 3 "$work/replay")"
            failed=1
        fi
    done
    unset set_first
done

[ "$seeds" -gt 0 ] || exit $failed
for build in old new; do
    mkdir "$work/$build"
    "${!build}" sim fuzz --seed 1 --runs "$seeds" --logs "$work/$build" | sed 's/: ok, /: /' >"$work/$build.drawn"
    for ((seed = 1; seed <= seeds; seed++)); do plain "$work/$build/$seed.log"; done >"$work/$build.plain"
done
same "$seeds random runs: what was drawn" "$work/old.drawn" "$work/new.drawn"
same "$seeds random runs: logs" "$work/old.plain" "$work/new.plain"
exit $failed

#!/usr/bin/env bash
# Replays the traces of HEADTIME_DATA under five schedulers and writes the tables and pictures of
# this folder. Takes about a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${HEADTIME_DATA:-../shared/data}/traces
[ -d "$data" ] || { echo "no traces in $data; set HEADTIME_DATA" >&2; exit 1; }
cargo build --release --quiet
headtime=${CARGO_TARGET_DIR:-target}/release/headtime
out=docs/replays
schedulers=noop,deadline,clook,sstf,sptf

{
    echo '# Tables'
    echo
    echo "Written by \`docs/replays/run.sh\`; see [the page about them](README.md)."
} >"$out/tables.md"

# replay NAME TRACE PROFILE OPTIONS...: a table and a picture
replay() {
    local name=$1 trace=$2 profile=$3
    shift 3
    echo "$name" >&2
    {
        printf '\n## %s\n\n' "$name"
        printf '```console\n$ headtime trace replay %s --profile %s %s --scheduler %s\n' \
            "$trace" "$profile" "$*" "$schedulers"
        (cd "$data" && "$OLDPWD/$headtime" trace replay "$trace" --profile "$profile" "$@" \
            --scheduler "$schedulers" --plot "$OLDPWD/$out/$name.svg" 2>/dev/null)
        printf '```\n\n![%s](%s.svg)\n' "$name" "$name"
    } >>"$out/tables.md"
}

case $headtime in /*) headtime=$(realpath --relative-to=. "$headtime") ;; esac
for profile in atlas10k exos-x18; do
    closed="--closed 32 --depth 1 --fit wrap"
    replay "wsrch-$profile" wsrch-small.trace "$profile" --device 0,1,2 $closed
    replay "tpcc-$profile" tpcc-small.trace "$profile" $closed
    replay "disksim-ascii-$profile" disksim-ascii.trace "$profile" $closed
    replay "wsrch-open-$profile" wsrch-small.trace "$profile" --device 0,1,2 \
        --open --speed 0.5 --depth 1 --fit wrap
done

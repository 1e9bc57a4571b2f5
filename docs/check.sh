#!/usr/bin/env bash
# Checks that the numbers and pictures of README and docs are those that the program prints now (docs/design/2026-11-27-pages.md). Takes one or
# two minutes.
#
#   docs/check.sh [--full] [--bless]
#
# --full    also runs what takes minutes: the sweeps that pages show
# --bless   writes stale numbers and pictures anew
#
# HEADTIME names a release build to use in place of one that is built, HEADTIME_DATA the folder of the traces that are not here. Without that folder
# what needs it is not checked, and a message says so. Needs jq.
set -euo pipefail
cd "$(dirname "$0")/.."
while [ $# -gt 0 ]; do
    case $1 in
    --full) export HEADTIME_PAGES=full ;;
    --bless) export HEADTIME_BLESS=1 ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
command -v jq >/dev/null || { echo 'jq is missing' >&2; exit 1; }
if [ -z "${HEADTIME:-}" ]; then
    cargo build --release --quiet
    HEADTIME=${CARGO_TARGET_DIR:-target}/release/headtime
fi
HEADTIME=$(realpath "$HEADTIME")
HEADTIME_DATA=$(realpath -m "${HEADTIME_DATA:-../shared/data}")
export HEADTIME HEADTIME_DATA

# Commands and tables of the pages, pictures of docs/pictures, and where numbers come from.
if ! cargo test --quiet --workspace --test cli -- --include-ignored printed:: numbers::; then
    echo 'Pages are stale: docs/check.sh --bless writes them anew' >&2
    exit 1
fi

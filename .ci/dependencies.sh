#!/usr/bin/env bash
# Checks the licences of all dependencies, and crates in several versions, by the output of `cargo metadata` on standard input:
#
#   cargo metadata --locked --offline --format-version 1 | .ci/dependencies.sh [--licences]
#
# With `--licences` nothing but the licences is checked.
# A licence passes if it is permissive, or offers a permissive one. Fails for any other licence, and for a crate that the list of
# duplicates below lacks or need not have.
set -euo pipefail

permissive='["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0", "Unlicense", "0BSD", "CC0-1.0"]'

# Crates of which two versions are built, with the reason.
declare -A duplicates=(
    [getrandom]='0.2 of ring, for TLS; 0.3 of arrow, for Parquet; 0.4 of proptest and tempfile, for tests'
    [itertools]='0.13 of criterion, for benchmarks; 0.14 of ratatui'
    [rand_core]='0.9 of rand_pcg, whose numbers are pinned; 0.10 of proptest and tempfile, for tests'
    [syn]='2 of num_enum and zerocopy, 3 of all other macros; at build time only'
)

metadata=$(cat)
failed=0

# Each side of an AND has to pass, by one of its OR or `/`. Older crates write `/`.
licences=$(jq -r --argjson permissive "$permissive" '
    .packages[] | select(.source != null) | (.license // "none") as $licence
    | select($licence | gsub("/"; " OR ") | split(" AND ") | all(gsub("[()]"; "") | split(" OR ") | any(IN($permissive[]))) | not)
    | "\(.name) \(.version): \($licence)"' <<<"$metadata")
[ -z "$licences" ] || { sed 's/^/not a permissive licence: /' <<<"$licences" >&2; failed=1; }

several=$(jq -r '[.packages[] | select(.source != null)] | group_by(.name)[] | select(length > 1) | .[0].name' <<<"$metadata")
[ "${1:-}" != --licences ] || { several='' duplicates=(); }
for name in $several; do
    [ -n "${duplicates[$name]:-}" ] || { echo "$name is built in several versions: use one, or give a reason in $0" >&2; failed=1; }
done
for name in "${!duplicates[@]}"; do
    grep -qxF "$name" <<<"$several" || { echo "$name is built in one version: $0 need not list it" >&2; failed=1; }
done
[ "$failed" = 0 ] || exit 1
jq -r '"\([.packages[] | select(.source != null)] | length) dependencies, all permissive"' <<<"$metadata"

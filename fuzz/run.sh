#!/usr/bin/env bash
# Runs every fuzz target for so many seconds each: fuzz/run.sh [SECONDS] [TARGET].. (10, all of them).
#
# Stable Rust will do: coverage needs no more than RUSTC_BOOTSTRAP, and AddressSanitizer, which does
# need nightly, would find little in code without `unsafe`. FUZZ_SANITIZER=address with a nightly
# toolchain as default turns it on. FUZZ_SEED is what inputs are drawn from (0, the default: another
# each time). A C++ compiler builds libFuzzer. A failing input is kept in
# fuzz/artifacts/TARGET, and the output ends with the command that repeats it.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-10}
shift || true
case $seconds in
    '' | *[!0-9]*) echo "usage: fuzz/run.sh [SECONDS] [TARGET].." >&2; exit 2 ;;
esac

if ! cargo fuzz --version >/dev/null 2>&1; then
    cargo install --locked cargo-fuzz
fi
export RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=1
options=(--sanitizer "${FUZZ_SANITIZER:-none}" --fuzz-dir . --features libfuzzer)

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(cargo fuzz list --fuzz-dir .)
    # All at once, which keeps all cores busy.
    cargo fuzz build "${options[@]}"
fi
for target in "${targets[@]}"; do
    echo "=== $target, $seconds s"
    mkdir -p "corpus/$target"
    # New finds go to the first folder, which is not committed; the seeds are only read.
    folders=("corpus/$target")
    [ ! -d "seeds/$target" ] || folders+=("seeds/$target")
    cargo fuzz run "${options[@]}" "$target" "${folders[@]}" -- \
        -seed="${FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -verbosity=0 -print_funcs=0
done
echo "=== ${#targets[@]} targets in $SECONDS s, nothing found"

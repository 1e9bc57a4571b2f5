#!/usr/bin/env bash
# Makes the Debian package and the RPM of the profile `dist` in target/package. Needs cargo-deb and cargo-generate-rpm:
#   cargo install cargo-deb cargo-generate-rpm
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in cargo-deb cargo-generate-rpm; do
    command -v "$tool" >/dev/null || { echo "$0: $tool is missing; cargo install $tool" >&2; exit 77; }
done
# The packages look for the binary and the other files below `target`.
unset CARGO_TARGET_DIR
HEADTIME_COMMIT=$(git rev-parse --short=12 HEAD)
export HEADTIME_COMMIT
cargo build --profile dist --package headtime-cli --features dist
package=target/package
rm -rf "$package"
for what in man completions examples; do target/dist/headtime generate "$what" "$package/$what"; done
cargo deb --package headtime-cli --profile dist --no-build --output "$package/"
# The Debian package has such a copy, too.
strip --strip-debug -o "$package/headtime" target/dist/headtime
cargo generate-rpm --package crates/cli --profile dist --output "$package/"
ls -l "$package"/*.deb "$package"/*.rpm

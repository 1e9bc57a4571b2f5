# Shared by the live tests and benchmarks; sourced by bash scripts. Everything is made in one temporary directory and undone at the end,
# and only processes that were started here are ended.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
headtime=${HEADTIME:-${CARGO_TARGET_DIR:-$root/target}/release/headtime}
work=$(mktemp -d "${TMPDIR:-/tmp}/headtime-live.XXXXXX")
server=
undo=()

# Runs what was put into `undo`, the last first, then ends the server and removes the directory.
cleanup() {
    local status=$? index
    trap - EXIT
    for ((index = ${#undo[@]} - 1; index >= 0; index--)); do
        ${undo[index]} >/dev/null 2>&1 || true
    done
    if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
        kill -KILL "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    # What a server that was killed leaves of its mount and loop device.
    if [ -d "$work/mnt" ]; then
        "$headtime" detach --force "$work/mnt" >/dev/null 2>&1 || true
    fi
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    echo "FAILED: $*" >&2
    if [ -f "$work/server.err" ]; then
        tail -n 20 "$work/server.err" >&2
    fi
    exit 1
}

# Ends the script well if something is missing that it cannot do without, unless REQUIRE_TOOLS says that it must be there.
skip() {
    if [ -n "${REQUIRE_TOOLS:-}" ]; then
        fail "$*"
    fi
    echo "SKIPPED: ${0##*/}: $*"
    exit 0
}

need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip "$tool is not installed"
    done
    [ -x "$headtime" ] || fail "$headtime is not there; cargo build --release --features fuse, or name it in HEADTIME"
}

# Waits for a command to succeed, at most so many seconds, as long as the server lives.
wait_for() {
    local seconds=$1 until
    shift
    until=$((SECONDS + seconds))
    while ! "$@" >/dev/null 2>&1; do
        [ -z "$server" ] || kill -0 "$server" 2>/dev/null || fail "the server ended while waiting for: $*"
        [ "$SECONDS" -lt "$until" ] || fail "waited $seconds s in vain for: $*"
        sleep 0.05
    done
}

# Starts `headtime serve` with the configuration in $work/serve.toml, which must listen on unix:$socket, and waits until it answers.
socket=$work/nbd.sock
control=$work/control.sock
serve() {
    "$headtime" serve "$work/serve.toml" "$@" >"$work/server.out" 2>"$work/server.err" &
    server=$!
    wait_for 20 nbdinfo --size "$(uri)"
}

uri() {
    echo "nbd+unix:///${1:-disk0}?socket=$socket"
}

# Ends the server as an administrator does, and expects it to end well.
stop() {
    local status=0
    kill -TERM "$server"
    wait "$server" || status=$?
    server=
    [ "$status" = 0 ] || fail "the server ended with $status"
}

# Starts `headtime attach` with $work/serve.toml on $work/mnt; with --loop the loop device of disk0 is in $loop afterwards.
loop=
attach() {
    rm -f "$work/attach.out"
    "$headtime" attach "$work/serve.toml" "$work/mnt" "$@" >"$work/attach.out" 2>"$work/server.err" &
    server=$!
    wait_for 20 grep -q '^ready' "$work/attach.out"
    loop=$(grep -o '/dev/loop[0-9]*' "$work/attach.out" | head -n 1 || true)
}

# Ends it as an administrator does.
detach() {
    local status=0
    "$headtime" detach "$work/mnt" >/dev/null || fail 'detach'
    wait "$server" || status=$?
    server=
    [ "$status" = 0 ] || fail "attach ended with $status"
}

# shellcheck shell=bash
# What the live tests and benchmarks share; sourced by bash scripts. Everything is made in one temporary directory and undone at the end,
# and only processes that were started here are ended.
#
# HEADTIME names the binary, in place of the release build in CARGO_TARGET_DIR; HEADTIME_LIVE_DIR where the directory is made, in place of
# TMPDIR; REQUIRE_TOOLS makes a failure of what would be skipped.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=${CARGO_TARGET_DIR:-target}
[[ $target = /* ]] || target=$root/$target
headtime=${HEADTIME:-$target/release/headtime}
work=$(mktemp -d "${HEADTIME_LIVE_DIR:-${TMPDIR:-/tmp}}/headtime-live.XXXXXX")
socket=$work/nbd.sock
control=$work/control.sock
server=
undos=()
# Exit code of what cannot be run here.
skipped=0

say() { echo "$*" >&2; }

fail() {
    say "FAILED: $*"
    if [ -s "$work/server.err" ]; then
        tail -n 20 "$work/server.err" >&2
    fi
    exit 1
}

# Ends the script if something is missing that it cannot do without, unless REQUIRE_TOOLS says that it must be there.
skip() {
    if [ -n "${REQUIRE_TOOLS:-}" ]; then
        fail "$*"
    fi
    echo "SKIPPED: ${0##*/}: $*"
    exit "$skipped"
}

# need TOOL...: and the binary.
need() {
    need_tools "$@"
    [ -x "$headtime" ] || fail "$headtime is not there; cargo build --release, or name it in HEADTIME"
}

need_tools() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip "$tool is not installed"
    done
}

# need_devices: root, FUSE and loop devices.
need_devices() {
    [ "$(id -u)" = 0 ] || skip 'needs root, which mounts file systems and sets up loop devices'
    [ -w /dev/fuse ] || skip 'needs FUSE; /dev/fuse cannot be opened'
    [ -w /dev/loop-control ] || skip 'needs loop devices; there is no /dev/loop-control'
}

# on_exit COMMAND...: what is to be undone at the end, the last one first.
on_exit() { undos+=("$(printf '%q ' "$@")"); }

# undo: the last of what is to be undone, now.
undo() {
    local last=${#undos[@]}
    local command=${undos[$((last - 1))]}
    unset "undos[$((last - 1))]"
    eval "$command"
}

# undo_to N: all but the first N.
undo_to() {
    while [ ${#undos[@]} -gt "$1" ]; do undo; done
}

# Undoes everything, ends the server, and removes the directory.
cleanup() {
    local status=$? try
    trap - EXIT
    trap '' INT TERM
    set +e
    undo_to 0
    if [ -n "$server" ] && kill -TERM "$server" 2>/dev/null; then
        for ((try = 0; try < 600; try++)); do
            kill -0 "$server" 2>/dev/null || break
            sleep 0.05
        done
        if kill -KILL "$server" 2>/dev/null; then say 'the server did not end within 30 s and was killed'; fi
        wait "$server" 2>/dev/null
    fi
    # What a server that was killed leaves of its mount and loop device.
    if [ -d "$work/mnt" ]; then
        "$headtime" detach --force "$work/mnt" >/dev/null 2>&1
    fi
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# wait_for SECONDS COMMAND...: until the command succeeds, at most so long, as long as the server lives.
wait_for() {
    local seconds=$1 until
    shift
    until=$((SECONDS + seconds))
    while ! "$@" >/dev/null 2>&1; do
        [ -z "$server" ] || kill -0 "$server" 2>/dev/null || fail "the server ended while waiting for: $*"
        [ "$SECONDS" -lt "$until" ] || fail "waited $seconds s in vain for: $*"
        sleep 0.02
    done
}

# configure SCHEDULER DEPTH DISK [LISTEN]: $work/serve.toml with one disk, disk0. DISK is what is behind it and LISTEN where clients come in
# ($socket, if nothing is said), as lines of a configuration.
configure() {
    local listen=${4:-nbd = \"unix:$socket\"}
    cat >"$work/serve.toml" <<TOML
[[disk]]
name = "disk0"
scheduler = "$1"
depth = $2
$3

[listen]
$listen
TOML
}

# What is behind a disk. Position-aware schedulers have to be told what drive a file is taken for.
in_memory() { # profile, size
    printf 'emulate = "%s"\nstore = "memory"\nsize = "%s"\n' "$1" "$2"
}
in_file() { # path
    printf 'device = "%s"\ndirect = false\nbelief = "wd5000aaks"\n' "$1"
}

# Starts `headtime serve` with the configuration in $work/serve.toml, which must listen on unix:$socket, and waits until it answers.
serve() {
    "$headtime" serve "$work/serve.toml" "$@" >"$work/server.out" 2>"$work/server.err" &
    server=$!
    wait_for 20 nbdinfo --size "$(uri "${first_export:-disk0}")"
}

uri() {
    echo "nbd+unix:///${1:-disk0}?socket=$socket"
}

# Ends the server as an administrator does, and expects it to end well.
stop() {
    kill -TERM "$server"
    ended 'the server'
}

ended() { # who
    local status=0
    wait "$server" || status=$?
    server=
    [ "$status" = 0 ] || fail "$1 ended with $status"
}

# punctual LABEL COMMAND...: runs the command until the emulated drive was in time. The command starts and stops a server and writes the status of
# the server to $work/status.json. After RUNS (3) late runs the machine is too busy, and the script is skipped, with REQUIRE_TOOLS too.
punctual() {
    local label=$1 runs=${RUNS:-3} run late
    shift
    for ((run = 1; run <= runs; run++)); do
        "$@"
        late=$(jq '.disks[0].lateness_ms.late_share' "$work/status.json")
        if awk -v late="$late" 'BEGIN { exit !(late <= 0.005) }'; then return; fi
        say "$label: of the drive's completions $late came more than 0.5 ms late"
    done
    echo "SKIPPED: ${0##*/}: the machine is too busy: $runs runs in which the drive was late"
    exit "$skipped"
}

# Starts `headtime attach` with $work/serve.toml on $work/mnt; with --loop the loop device of disk0 is in $loop afterwards.
loop=
attach() {
    mkdir -p "$work/mnt"
    rm -f "$work/attach.out"
    # A session of its own: a Ctrl-C of the terminal is for the script, which unmounts first.
    setsid "$headtime" attach "$work/serve.toml" "$work/mnt" "$@" >"$work/attach.out" 2>"$work/server.err" &
    server=$!
    wait_for 20 grep -q '^ready' "$work/attach.out"
    loop=$(grep -o '/dev/loop[0-9]*' "$work/attach.out" | head -n 1 || true)
}

# Ends it as an administrator does.
detach() {
    "$headtime" detach "$work/mnt" >/dev/null || fail 'detach'
    ended attach
}

#!/usr/bin/env bash
# libnbd's own tests of servers: aio-parallel, aio-parallel-load and synch-parallel, for RUN_TIME (3) seconds each, and its tests of
# interoperability, which start the server with an inherited socket. Left out: structured-read and dirty-bitmap, which need a qcow2 image.
source "$(dirname "$0")/lib.sh"
peers=$(cd "$(dirname "$0")" && pwd)
need cc flock nbdinfo python3
debian_source libnbd '*/tests/*.[ch]' '*/interop/*.[ch]' '*/common/include' '*/include/libnbd.h'
source=$cache/libnbd
build=$work/build
mkdir -p "$build"
touch "$build/config.h"
# compile NAME SOURCE [OPTION...]
compile() {
    local name=$1 file=$2
    shift 2
    sed "s/^#define RUN_TIME .*/#define RUN_TIME ${RUN_TIME:-3}/" "$source/$file" >"$source/${file%.c}.timed.c"
    cc -w -O1 -I"$build" -I"$source/tests" -I"$source/common/include" -I"$source/include" "$@" -o "$build/$name" "$source/${file%.c}.timed.c" -l:libnbd.so.0 -lpthread ||
        fail "cannot compile $file"
}
for test in aio-parallel aio-parallel-load synch-parallel; do compile "$test" "tests/$test.c"; done
export HEADTIME=$headtime TMPDIR=$work
with=(-DSERVER="\"$peers/qemu-nbd\"" -DNEEDS_TMPFILE=1 -DSOCKET_ACTIVATION=1 "$source/interop/requires.c")
compile interop interop/interop.c "${with[@]}" -DSERVER_PARAMS='"-f", "raw", "-x", "disk1", TMPFILE' -DEXPORT_NAME='"disk1"'
compile list-exports interop/list-exports.c "${with[@]}" -DSERVER_PARAMS='"-f", "raw", "-x", "disk1", TMPFILE' -DEXPORTS='"disk1"' -DDESCRIPTIONS='"disk disk1"'
compile socket-activation interop/socket-activation.c -DSERVER="\"$peers/qemu-nbd\"" -DSERVER_PARAMS='"-f", "raw", tmpfile'

# against TEST MIB: a server of so many MiB, of which each 8 bytes are their offset, as two of the tests expect.
against() {
    python3 -c 'import array, sys
words = array.array("Q", range(0, int(sys.argv[1]) << 20, 8))
words.byteswap()
words.tofile(open(sys.argv[2], "wb"))' "$2" "$work/image"
    configure noop 32 "$(in_file "$work/image")"
    serve
    "$build/$1" "$socket" >"$work/out" 2>&1 || fail "$1: $(tail -n 3 "$work/out")"
    stop
    echo "libnbd: $1"
}
against aio-parallel 64
against aio-parallel-load 64
against synch-parallel 8
for test in interop list-exports socket-activation; do
    (cd "$build" && "./$test" >"$work/out" 2>&1) || fail "$test: $(tail -n 3 "$work/out")"
    echo "libnbd: $test"
done

#!/usr/bin/env bash
# qemu-iotests of QEMU 7.2, `check -nbd -raw`, with Headtime in the place of qemu-nbd. About a minute. Tests that need a whole QEMU fail for both,
# as a stub is in its place. qemu-iotests.known names each failure with its cause; any other failure, and a known one that passes, fails this
# script. With --reference: qemu-nbd itself, whose failures are in the same file.
source "$(dirname "$0")/lib.sh"
peers=$(cd "$(dirname "$0")" && pwd)
need qemu-img qemu-io qemu-nbd python3 flock setsid
of=headtime
if [ "${1:-}" = --reference ]; then of=qemu-nbd; fi

debian_source qemu '*/tests/qemu-iotests' '*/python' '*/scripts'
cp -r "$cache/qemu" "$work/qemu"
cd "$work/qemu/tests/qemu-iotests"
# 241 exports an image of 1000 bytes, which qemu-nbd rounds up to 1024, and whose format it guesses. Headtime serves 1000 bytes each time.
if [ "$of" = headtime ]; then
    sed -e "s/export: ''/export: 'disk'/" -e 's/size:  1024/size:  1000/' -e 's/min block: 512/min block: 1/' -e '/^WARNING/,/Specify the/d' \
        -e 's/"data": false, "offset": OFFSET}]/"data": false}]/' \
        -e 's/"length": 1024\(.*\)}]/"length": 1000\1},\n{ "start": 1000, "length": 24, "depth": 0, "present": true, "zero": true, "data": false}]/' \
        241.out >241.out.raw
fi

printf '#!/bin/sh\nexit 0\n' >"$work/stub"
chmod +x "$work/stub"
# Without a dot, which some tests refuse.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/headtime-iotests-XXXXXX")
on_exit rm -rf "$scratch"
export TEST_DIR=$scratch/test SOCK_DIR=$scratch/sock TMPDIR=$scratch HEADTIME=$headtime
QEMU_IMG_PROG=$(command -v qemu-img) QEMU_IO_PROG=$(command -v qemu-io) REAL_QEMU_NBD=$(command -v qemu-nbd)
export QEMU_IMG_PROG QEMU_IO_PROG REAL_QEMU_NBD QEMU_PROG=$work/stub QSD_PROG=$work/stub
export QEMU_NBD_PROG=$REAL_QEMU_NBD
if [ "$of" = headtime ]; then QEMU_NBD_PROG=$peers/qemu-nbd; fi
mkdir -p "$TEST_DIR" "$SOCK_DIR"
# The system's Python, which need not be the first one that is found.
mapfile -t tests < <(grep -lE '^#!.*bash' [0-9][0-9][0-9] | xargs grep -lE '^_supported_proto .*(nbd|generic)' | xargs grep -lE '^_supported_fmt .*(raw|generic)')
/usr/bin/python3 ./check -j 4 -nbd -raw "${tests[@]}" >"$work/check.out" 2>&1 || true
ran=$(grep -c '^[0-9][0-9][0-9] .*\(pass\|fail\)' "$work/check.out" || true)
failed=$(sed -n 's/^Failures: //p' "$work/check.out")
[ "$ran" -ge 20 ] || fail "only $ran tests ran: $(tail -n 20 "$work/check.out")"
known=$(awk -v of="$of" '$2 == of || $2 == "both" { print $1 }' "$peers/qemu-iotests.known")
unknown=$(comm -13 <(sort <<<"$known") <(tr ' ' '\n' <<<"$failed" | sort) | xargs)
mended=$(comm -23 <(sort <<<"$known") <(tr ' ' '\n' <<<"$failed" | sort) | xargs)
if [ -n "$unknown" ]; then
    for test in $unknown; do
        say "--- $test"
        cat "$TEST_DIR/$test/$test.out.bad" >&2 || true
    done
    fail "qemu-iotests: $unknown"
fi
[ -z "$mended" ] || fail "qemu-iotests: passes and is named in qemu-iotests.known: $mended"
echo "qemu-iotests: $((ran - $(wc -w <<<"$failed"))) of $ran pass with $of; the others are known: $failed"

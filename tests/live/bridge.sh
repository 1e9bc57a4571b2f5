#!/usr/bin/env bash
# What the simulator decides, the server decides: logs of fio over NBD, on an emulated drive and on a file, are fed to the simulator's
# engine, which must decide the same. With a swap of schedulers in flight, and with a scrub that reads in the gaps of two commands in the
# drive. Takes some three minutes.
source "$(dirname "$0")/lib.sh"
need fio nbdinfo

schedulers=(noop 'stream(deadline)' cfq sptf)
requests=${REQUESTS:-300}

job() { # name, fio options
    local name=$1
    shift
    fio --name="$name" --ioengine=nbd --uri="$(uri)" --size=1g --randseed=7 --minimal "$@" >"$work/fio.out" 2>&1 || fail "fio: $(cat "$work/fio.out")"
}

truncate --size=1G "$work/file.img"
emulated=$(in_memory wd5000aaks 1GiB)
file=$(in_file "$work/file.img")

for device in emulated file; do
    for scheduler in "${schedulers[@]}"; do
        configure "$scheduler" 4 "${!device}"
        serve --log "$work/serve.log"
        job random --rw=randrw --bs=4k --iodepth=16 --number_ios="$requests"
        job sequential --rw=read --bs=128k --iodepth=4 --numjobs=2 --offset_increment=400m --number_ios="$requests" --group_reporting
        job flushes --rw=randwrite --bssplit=4k/60:64k/40 --iodepth=8 --fsync=10 --number_ios="$requests"
        # Another scheduler in flight.
        fio --name=swap --ioengine=nbd --uri="$(uri)" --size=1g --rw=randread --bs=4k --iodepth=16 --runtime=2 --time_based --minimal >/dev/null 2>&1 &
        swapped=$!
        sleep 1
        configure mq-deadline 4 "${!device}"
        kill -HUP "$server"
        wait "$swapped" || fail "fio ended with an error while the scheduler was swapped"
        stop
        "$headtime" sim replay-log "$work/serve.log" >"$work/replay.out" || fail "$device, $scheduler: $(cat "$work/replay.out")"
        grep -q '^S ' "$work/serve.log" || fail "$device, $scheduler: the scheduler was not swapped"
        printf '%-8s %-16s %7s lines of log: %s\n' "$device" "$scheduler" "$(wc -l <"$work/serve.log")" "$(tail -n 1 "$work/replay.out")"
    done
done

# A scrub in gaps: the assumed drive in is the emulated one, and idle time is not used, so whatever it reads goes with a client's request.
configure sptf-sw60 2 "$(in_memory exos-x18 1GiB)" "nbd = \"unix:$socket\"
control = \"unix:$control\""
serve --log "$work/serve.log"
"$headtime" scrub "$control" disk0 --no-wait --idle off --block 64KiB >/dev/null 2>"$work/scrub.out" || fail "scrub: $(cat "$work/scrub.out")"
fio --name=clients --ioengine=nbd --uri="$(uri)" --size=1g --randseed=7 --rw=randrw --rwmixread=90 --bs=8k --numjobs=10 --thread \
    --iodepth=1 --runtime=8 --time_based --minimal >"$work/fio.out" 2>&1 &
clients=$!
# Another scheduler and another gate in flight.
sleep 4
configure sptf 2 "$(in_memory exos-x18 1GiB)
gate = \"rsd:age_th=50\"" "nbd = \"unix:$socket\"
control = \"unix:$control\""
kill -HUP "$server"
wait "$clients" || fail "fio: $(cat "$work/fio.out")"
"$headtime" scrub "$control" disk0 status >"$work/status.out" || fail "scrub: $(cat "$work/status.out")"
stop
"$headtime" sim replay-log "$work/serve.log" >"$work/replay.out" || fail "scrub: $(cat "$work/replay.out")"
joined=$(grep -c '^J ' "$work/serve.log" || true)
[ "$joined" -gt 0 ] || fail "scrub: nothing was read in gaps: $(cat "$work/status.out")"
grep -q '^G [0-9]* rsd:age_th=50 sptf$' "$work/serve.log" || fail "scrub: gate and scheduler were not swapped: $(grep '^[GS] ' "$work/serve.log")"
after=$(sed '1,/^G /d' "$work/serve.log" | grep -c '^J ' || true)
[ "$after" -gt 0 ] || fail 'scrub: nothing was read in gaps after the swap'
if grep '^J ' "$work/serve.log" | grep -q ' alone$'; then fail 'scrub: it has read in idle time, which is not used'; fi
printf '%-8s %-16s %7s lines of log, %s reads in gaps: %s\n' emulated 'sptf-sw60, scrub' "$(wc -l <"$work/serve.log")" "$joined" "$(tail -n 1 "$work/replay.out")"
echo 'bridge: every decision is the same'

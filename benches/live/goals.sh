#!/usr/bin/env bash
# Run-time goals on a live server: three emulated disks, a sequential program, a random one, and a backup, over NBD. Takes the profiles of both programs,
# then runs all together with goals: by windows, by constant rates, and without either. Prints a table, and how often a command of a window ended in the next window.
#
#   benches/live/goals.sh [--goal TIMES] [--seconds N] [--repeat N] [--servers N]
#
# --goal     goals of both programs as multiples of their runs alone; 2.5 if not given
# --seconds  length of a program's run alone, about; 10 if not given
# --repeat   runs of each row; 1 if not given
# --servers  1: one server with three disks, the default. 3: three servers with one disk each, under `headtime qos coordinate`. Then a last row kills one
#            server in the middle of the run, and starts it again after 2 s.
# Goals are kept if no program is more than 5 % late. The backup is to have 0.8 of what the goals leave.
# A run counts if under 1 % of the completions were more than 0.5 ms late; other runs are marked `!`.
# Needs fio with its nbd engine, jq, python3 and libnbd's nbdinfo; ends with code 77 where they are missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../tests/live/lib.sh"
skipped=77
goal=2.5 seconds=10 repeat=1 servers=1
while [ $# -gt 0 ]; do
    case $1 in
    --goal) goal=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --repeat) repeat=$2 && shift ;;
    --servers) servers=$2 && shift ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
    shift
done
[ "$servers" = 1 ] || [ "$servers" = 3 ] || fail "--servers $servers: allowed are 1 and 3"
need fio jq python3 nbdinfo
fio --enghelp | grep -qw nbd || skip 'fio has no nbd engine'
profile=barracuda-7200.10-160
programs=(sequential random)
# About so many bytes a second of each disk alone.
declare -A rate=([sequential]=70 [random]=5)

pids=()
on_exit end_all
end_all() {
    [ ${#pids[@]} = 0 ] || kill -TERM "${pids[@]}" 2>/dev/null || true
    [ ${#pids[@]} = 0 ] || wait "${pids[@]}" || true
    pids=()
}

# place DISK: the server of a disk.
place() { if [ "$servers" = 1 ]; then echo 0; else echo "$1"; fi; }

uri() { echo "nbd+unix:///$1?socket=$work/nbd$(place "${1: -1}").sock"; }

# programs EXPORTS?: the programs, with exports on these disks if any are given; profiles if they are there.
programs() {
    local name disk exports
    for name in "${programs[@]}" backup; do
        printf '[[qos.program]]\nname = "%s"\n' $name
        exports=
        for disk in "$@"; do exports+="\"$name$disk\", "; done
        [ -z "$exports" ] || printf 'exports = [%s]\n' "${exports%, }"
        [ ! -s "$work/$name.profile" ] || [ $# = 1 ] || printf 'profile = "%s"\n' "$work/$name.profile"
    done
}

# settings SERVER GATE SCHEDULER: its disks with three exports each, and the programs.
settings() {
    local disk disks=(0 1 2)
    [ "$servers" = 1 ] || disks=("$1")
    for disk in "${disks[@]}"; do
        printf '[[disk]]\nname = "disk%s"\nemulate = "%s"\nstore = "%s/store%s"\ncreate = true\ndepth = 8\ngate = "%s"\nscheduler = "%s"\n' \
            $disk $profile "$work" $disk "$2" "$3"
        printf '[[disk.export]]\nname = "sequential%s"\nrange = "0B..20GiB"\n' $disk
        printf '[[disk.export]]\nname = "random%s"\nrange = "60GiB..80GiB"\n' $disk
        printf '[[disk.export]]\nname = "backup%s"\nrange = "100GiB..120GiB"\n' $disk
    done
    printf '[listen]\nnbd = "unix:%s"\ncontrol = "unix:%s"\n' "$work/nbd$1.sock" "$work/control$1.sock"
    [ "$2" = depth ] || programs "${disks[@]}"
}

# serve_one SERVER GATE SCHEDULER: starts a server, or starts it again.
serve_one() {
    local log=$work/events.log
    [ "$servers" = 1 ] || log+=".$1"
    settings "$@" >"$work/serve$1.toml"
    "$headtime" serve "$work/serve$1.toml" --log "$log" >"$work/server.out" 2>>"$work/server.err" &
    pids[$1]=$!
    wait_for 20 nbdinfo --size "$(uri "sequential$1")"
}

# start GATE SCHEDULER: all servers, and the coordinator of several.
start() {
    local of
    rm -f "$work"/events.log*
    for ((of = 0; of < servers; of++)); do serve_one $of "$@"; done
    control=$work/control0.sock
    if [ "$servers" = 3 ] && [ "$1" = windows ]; then
        control=$work/goals.sock
        rm -f "$work/goals.out"
        programs >"$work/programs.toml"
        "$headtime" qos coordinate "$work"/control[012].sock --programs "$work/programs.toml" --control "$control" >"$work/goals.out" 2>>"$work/server.err" &
        pids[3]=$!
        wait_for 20 grep -q ready "$work/goals.out"
    fi
}

ask() { "$headtime" control "$control" "$@"; }

# of_servers FILTER: a value over all servers' states.
of_servers() {
    local of
    for ((of = 0; of < servers; of++)); do "$headtime" control "$work/control$of.sock" status --json; done | jq -s "$1"
}

# results FILE: what fio measured. Its messages stand in front.
results() { sed -n '/^{/,$p' "$1"; }

# run PROGRAM: its run to the end; prints the run time in seconds.
run() {
    local disk kind jobs=() name=$1
    kind=(--rw=read --bs=128k --iodepth=4)
    [ "$name" = sequential ] || kind=(--rw=randread --bs=64k --iodepth=4 --norandommap)
    for disk in 0 1 2; do jobs+=(--name="$name$disk" --uri="$(uri "$name$disk")"); done
    fio --ioengine=nbd --thread --output-format=json --output="$work/$name.json" --size=20g --io_size=$((rate[$name] * seconds))m \
        --randseed="${2:-1}" "${kind[@]}" "${jobs[@]}" >/dev/null || [ "${3:-}" = killed ]
    results "$work/$name.json" | jq '[.jobs[].read.runtime] | max / 1000'
}

# backup SECONDS: reads all three disks in sequence for so long, or until it is ended.
backup() {
    local disk jobs=()
    for disk in 0 1 2; do jobs+=(--name="backup$disk" --uri="$(uri "backup$disk")"); done
    exec fio --ioengine=nbd --thread --output-format=json --output="$work/backup.json" --size=20g --rw=read --bs=256k --iodepth=2 \
        --time_based --runtime="$1" "${jobs[@]}" >/dev/null
}

megabytes() { results "$1" | jq '[.jobs[].read.io_bytes] | add / 1e6'; }

declare -A alone
say 'profiles'
start windows cfq
for name in "${programs[@]}"; do
    ask qos profile $name start >/dev/null
    alone[$name]=$(run $name 7)
    sleep 0.3
    ask qos profile $name stop >"$work/$name.profile"
    say "$name: ${alone[$name]} s alone"
done
(backup 5)
backup_alone=$(jq -n "$(megabytes "$work/backup.json") / 5")
say "backup: $backup_alone MB/s alone"
end_all

# outage: kills the server of disk 1 in the middle of the run, and starts it again after 2 s with a reader for each program.
outage() {
    local before after served='[.[].disks[] | select(.name != "disk1").exports[].bytes.read] | add / 1e6' name
    sleep "$(jq -n "$seconds * $goal / 2")"
    before=$(of_servers "$served")
    kill -KILL "${pids[1]}"
    wait "${pids[1]}" 2>/dev/null || true
    sleep 2
    after=$("$headtime" control "$work/control0.sock" status --json | jq -s "$served")
    after=$(jq -n "$after + $("$headtime" control "$work/control2.sock" status --json | jq -s "$served")")
    say "while disk 1 was away for 2 s, the others served $(jq -n "$after - $before | round") MB"
    serve_one 1 windows cfq
    for name in "${programs[@]}"; do
        fio --ioengine=nbd --thread --size=20g --rw=read --bs=64k --iodepth=4 --time_based --runtime=4 --name="$name" \
            --uri="$(uri "${name}1")" >/dev/null &
    done
    sleep 4
    awk '$1 == "O" && $3 == "window" { print "the first window came " $2 / 1e6 " ms after the server started again"; exit }' "$work/events.log.1" >&2
}

# row NAME GATE SCHEDULER: all programs at the same time.
row() {
    local name=$1 late='' reader=() values=() program started
    start "$2" "$3"
    if [ "$2" != depth ]; then
        for program in "${programs[@]}"; do ask qos goal $program "${goal}x" >/dev/null; done
    fi
    started=$EPOCHREALTIME
    backup 600 &
    local behind=$!
    for program in "${programs[@]}"; do
        run $program 1 "${4:-}" >"$work/$program.time" &
        reader+=($!)
    done
    [ -z "${4:-}" ] || outage
    wait "${reader[@]}"
    started=$(jq -n "$EPOCHREALTIME - $started")
    kill -INT $behind && wait $behind || true
    late=$(of_servers '[.[].disks[].lateness_ms.late_share] | if max > 0.01 then "!" else "" end' | tr -d '"')
    end_all
    for program in "${programs[@]}"; do
        values+=("$(cat "$work/$program.time")" "${alone[$program]}")
    done
    python3 - "$name$late" "$goal" "$started" "$(megabytes "$work/backup.json")" "$backup_alone" "${values[@]}" <<'PYTHON'
import sys

name, (times, span, moved, rate, *values) = sys.argv[1], map(float, sys.argv[2:])
cells = []
for took, alone in zip(values[::2], values[1::2]):
    goal = alone * times
    cells.append(f"{took:9.1f} {goal:8.1f} {(took / goal - 1) * 100:7.1f}")
left = max(span - sum(values[1::2]), 0.001) * rate
print(f"{name:20}", *cells, f"{moved / span:9.1f} {moved / left:8.2f}", flush=True)
PYTHON
}

# switches: how many changes from a window to one of another program there were, and in how many no command of the old window ended in the new one.
switches() {
    python3 - "$work"/events.log* <<'PYTHON'
import sys

changes = clean = 0
overruns = []
for path in sys.argv[1:]:
    lane_of, program_of, lane_at, plan, ended = {}, {}, {}, [], []
    for line in open(path, errors="replace"):
        kind, *of = line.split()
        if kind == "A":
            program_of[of[2], of[3]] = int(of[7])
        elif kind == "I":
            lane_at[of[1]] = (int(of[0]), lane_of.get(program_of.get((of[2], of[3]), 0), 0))
        elif kind == "C" and of[1] in lane_at:
            ended.append((*lane_at.pop(of[1]), int(of[0])))
        elif kind == "O" and of[1] == "assign":
            lane_of[int(of[2])] = int(of[3])
        elif kind == "O" and of[1] == "window":
            lane, start, length = map(int, of[2:5])
            plan = [window for window in plan if window[0] < start] + [(start, start + length, lane)]
    late, at = {}, 0
    for issued, lane, end in sorted(ended):
        while at + 1 < len(plan) and plan[at + 1][0] <= issued:
            at += 1
        if at + 1 < len(plan) and plan[at][2] == lane and plan[at][1] == plan[at + 1][0] < end and plan[at + 1][2] != lane:
            late[at] = max(late.get(at, 0), end - plan[at][1])
    of_disk = sum(one[2] != two[2] and one[1] == two[0] for one, two in zip(plan, plan[1:]))
    changes, clean = changes + of_disk, clean + of_disk - len(late)
    overruns += late.values()
overruns = ", ".join(f"{ns / 1e6:.1f}" for ns in sorted(overruns))
print(f"{clean} of {changes} changes of window were clean ({100 * clean / max(changes, 1):.1f} %); overruns in ms: {overruns}", flush=True)
PYTHON
}

printf '%-20s %9s %8s %7s %9s %8s %7s %9s %8s\n' '' 'seq s' 'goal s' 'late %' 'random s' 'goal s' 'late %' 'backup' 'of left'
for ((i = 0; i < repeat; i++)); do
    row 'cfq alone' depth cfq
    [ "$servers" = 3 ] || row average average cfq
    row windows windows cfq
    switches
    [ "$servers" = 1 ] || row 'one server killed' windows cfq killed
done

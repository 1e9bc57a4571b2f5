#!/usr/bin/env bash
# Run-time goals on a live server: three emulated disks, a sequential program, a random one, and a backup, over NBD. Takes the profiles of both programs,
# then runs all together with goals: by windows, by constant rates, and without either. Prints a table, and how often a command of a window ended in the next window.
#
#   benches/live/goals.sh [--goal TIMES] [--seconds N] [--repeat N]
#
# --goal     goals of both programs as multiples of their runs alone; 2.5 if not given
# --seconds  length of a program's run alone, about; 10 if not given
# --repeat   runs of each row; 1 if not given
# Goals are kept if no program is more than 5 % late. The backup is to have 0.8 of what the goals leave.
# A run counts if under 1 % of the completions were more than 0.5 ms late; other runs are marked `!`.
# Needs fio with its nbd engine, jq, python3 and libnbd's nbdinfo; ends with code 77 where they are missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../tests/live/lib.sh"
skipped=77
goal=2.5 seconds=10 repeat=1
while [ $# -gt 0 ]; do
    case $1 in
    --goal) goal=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --repeat) repeat=$2 && shift ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
    shift
done
need fio jq python3 nbdinfo
fio --enghelp | grep -qw nbd || skip 'fio has no nbd engine'
profile=barracuda-7200.10-160
programs=(sequential random)
# About so many bytes a second of each disk alone.
declare -A rate=([sequential]=70 [random]=5)

# settings GATE SCHEDULER: three disks with three exports each, and the programs; profiles if they are there.
settings() {
    local disk name
    for disk in 0 1 2; do
        printf '[[disk]]\nname = "disk%s"\nemulate = "%s"\nstore = "%s/store%s"\ncreate = true\ndepth = 8\ngate = "%s"\nscheduler = "%s"\n' \
            $disk $profile "$work" $disk "$1" "$2"
        printf '[[disk.export]]\nname = "sequential%s"\nrange = "0B..20GiB"\n' $disk
        printf '[[disk.export]]\nname = "random%s"\nrange = "60GiB..80GiB"\n' $disk
        printf '[[disk.export]]\nname = "backup%s"\nrange = "100GiB..120GiB"\n' $disk
    done
    printf '[listen]\nnbd = "unix:%s"\ncontrol = "unix:%s"\n' "$socket" "$control"
    [ "$1" != depth ] || return 0
    for name in "${programs[@]}" backup; do
        printf '[[qos.program]]\nname = "%s"\nexports = ["%s0", "%s1", "%s2"]\n' $name $name $name $name
        [ ! -s "$work/$name.profile" ] || printf 'profile = "%s"\n' "$work/$name.profile"
    done
}

start() {
    settings "$1" "$2" >"$work/serve.toml"
    "$headtime" serve "$work/serve.toml" "${@:3}" >"$work/server.out" 2>"$work/server.err" &
    server=$!
    wait_for 20 nbdinfo --size "$(uri sequential0)"
}

ask() { "$headtime" control "$control" "$@"; }

# results FILE: what fio measured. Its messages stand in front.
results() { sed -n '/^{/,$p' "$1"; }

# run PROGRAM: its run to the end; prints the run time in seconds.
run() {
    local disk kind jobs=() name=$1
    kind=(--rw=read --bs=128k --iodepth=4)
    [ "$name" = sequential ] || kind=(--rw=randread --bs=64k --iodepth=4 --norandommap)
    for disk in 0 1 2; do jobs+=(--name="$name$disk" --uri="nbd+unix:///$name$disk?socket=$socket"); done
    fio --ioengine=nbd --thread --output-format=json --output="$work/$name.json" --size=20g --io_size=$((rate[$name] * seconds))m \
        --randseed="${2:-1}" "${kind[@]}" "${jobs[@]}" >/dev/null
    results "$work/$name.json" | jq '[.jobs[].read.runtime] | max / 1000'
}

# backup SECONDS: reads all three disks in sequence for so long, or until it is ended.
backup() {
    local disk jobs=()
    for disk in 0 1 2; do jobs+=(--name="backup$disk" --uri="nbd+unix:///backup$disk?socket=$socket"); done
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
stop

# row NAME GATE SCHEDULER: all programs at the same time.
row() {
    local name=$1 late='' reader=() values=() program started=$EPOCHREALTIME
    start "$2" "$3" --log "$work/events.log"
    if [ "$2" != depth ]; then
        for program in "${programs[@]}"; do ask qos goal $program "${goal}x" >/dev/null; done
    fi
    backup 600 &
    local behind=$!
    for program in "${programs[@]}"; do
        run $program 1 >"$work/$program.time" &
        reader+=($!)
    done
    wait "${reader[@]}"
    started=$(jq -n "$EPOCHREALTIME - $started")
    kill -INT $behind && wait $behind || true
    late=$(ask status | jq -r '[.disks[].lateness_ms.late_share] | if max > 0.01 then "!" else "" end')
    stop
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
    late, at = set(), 0
    for issued, lane, end in sorted(ended):
        while at + 1 < len(plan) and plan[at + 1][0] <= issued:
            at += 1
        if at + 1 < len(plan) and plan[at][2] == lane and plan[at][1] == plan[at + 1][0] < end and plan[at + 1][2] != lane:
            late.add(at)
    of_disk = sum(one[2] != two[2] and one[1] == two[0] for one, two in zip(plan, plan[1:]))
    changes, clean = changes + of_disk, clean + of_disk - len(late)
print(f"{clean} of {changes} changes of window were clean ({100 * clean / max(changes, 1):.1f} %)", flush=True)
PYTHON
}

printf '%-20s %9s %8s %7s %9s %8s %7s %9s %8s\n' '' 'seq s' 'goal s' 'late %' 'random s' 'goal s' 'late %' 'backup' 'of left'
for ((i = 0; i < repeat; i++)); do
    row 'cfq alone' depth cfq
    row average average cfq
    row windows windows cfq
    switches
done

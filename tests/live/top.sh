#!/usr/bin/env bash
# `headtime top` in a terminal: the tables, the keys, a change after its question, and a server that goes away. 77: tmux or the feature
# `top` is missing.
. "$(dirname "$0")/lib.sh"
skipped=77
need tmux
# The exit code of `top` is that of a failure in both cases.
said=$("$headtime" top "$control" 2>&1 || true)
[[ $said != *'without the screen'* ]] || skip 'the program was built without the feature top'
tmux() { command tmux -S "$work/tmux.sock" -f /dev/null "$@"; }

cat >"$work/serve.toml" <<EOF
[[disk]]
name = "disk0"
emulate = "wd5000aaks"
store = "memory"
size = "1GiB"
scheduler = "deadline"
[listen]
nbd = "unix:$socket"
control = "unix:$control"
EOF
"$headtime" serve "$work/serve.toml" >"$work/server.out" 2>"$work/server.err" &
server=$!
end_of_tmux() { tmux kill-server 2>/dev/null || true; }
on_exit end_of_tmux
wait_for 20 test -S "$control"

tmux new-session -d -x 160 -y 40 "'$headtime' top '$control'; echo \"ended with \$?\"; sleep 60"
on_screen() { tmux capture-pane -p | grep -F -- "$1"; }
# shown TEXT: waits until the screen has a text.
shown() { wait_for 20 on_screen "$1"; }
shown 'rates of 1.'
shown 'time of the arm'
shown 'disk0   '
tmux send-keys '?'; shown 'freeze the figures'
tmux send-keys x s; shown 'exports by MB/s'
tmux send-keys f; shown FROZEN
tmux send-keys f
echo 'top: tables, help, order, freeze'

state() { "$headtime" control "$control" status; }
tmux send-keys c; shown 'scheduler of disk0: deadline_'
tmux send-keys BSpace BSpace BSpace BSpace BSpace BSpace BSpace BSpace
tmux send-keys -l sptf; tmux send-keys Enter; shown 'give disk0 the scheduler sptf? y: yes'
tmux send-keys n; shown 'nothing is changed'
state | grep -q '  deadline; ' || fail "the scheduler changed without a yes: $(state)"
tmux send-keys g; shown 'gate of disk0: depth_'
tmux send-keys -l :x; tmux send-keys Enter; shown 'y: yes'; tmux send-keys y; shown 'refused: '
tmux send-keys c; tmux send-keys BSpace BSpace BSpace BSpace BSpace BSpace BSpace BSpace
tmux send-keys -l sptf; tmux send-keys Enter; shown 'y: yes'; tmux send-keys y; shown 'disk0 has the scheduler sptf'
state | grep -q '  sptf; ' || fail "the scheduler did not change: $(state)"
echo 'top: changes only after a yes, and says why not'

stop
shown 'no server listens there'
shown 'ended with 4'
echo 'top: a server that goes away is said, exit code 4'

#!/usr/bin/env bash
# The shipped unit with clients of other users, as far as that goes without systemd as the first process: what it says is read from it and put
# in force by hand, in a mount namespace, with the configuration and the drop-in of docs/serve.md. Who is in the group reads and writes; who is
# not is refused; neither gets to the control socket, nor into a directory. Nothing of the machine is changed.
source "$(dirname "$0")/lib.sh"
need nbdinfo nbdsh setpriv prlimit unshare flock
[ "$(id -u)" = 0 ] || skip 'needs root, which becomes other users'
if [ "${1:-}" != inside ]; then
    unshare --mount --propagation private mount -t tmpfs none /run 2>/dev/null || skip 'needs mount namespaces'
    # What runs inside makes a directory of its own.
    trap - EXIT
    rm -r "$work"
    exec unshare --mount --propagation private "$0" inside
fi
case $work in /run/* | /var/lib/*) skip "$work would be hidden; HEADTIME_LIVE_DIR names another place" ;; esac

unit=$root/packaging/headtime.service
# Put in force below, or looked at; what only systemd can do; and nothing else, so that this script learns of what comes.
by_hand=(ExecStartPre ExecStart ExecReload DynamicUser StateDirectory StateDirectoryMode RuntimeDirectory RuntimeDirectoryMode WorkingDirectory UMask
    AmbientCapabilities CapabilityBoundingSet LimitRTPRIO LimitMEMLOCK LimitNOFILE NoNewPrivileges ProtectSystem PrivateTmp)
by_systemd=(Type WatchdogSec TimeoutStopSec Restart RestartPreventExitStatus IPAddressDeny IPAddressAllow RestrictAddressFamilies DevicePolicy ProtectHome
    ProtectClock ProtectControlGroups ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc RestrictNamespaces
    RestrictSUIDSGID LockPersonality MemoryDenyWriteExecute SystemCallArchitectures SystemCallFilter)
service=$(sed -n '/^\[Service\]/,/^\[Install\]/p' "$unit" | grep '^[A-Z]')
while IFS='=' read -r key _; do
    [[ " ${by_hand[*]} ${by_systemd[*]} " = *" $key "* ]] || fail "the unit says $key, which this script does not know"
done <<<"$service"

setting() { # key
    local value
    value=$(sed -n "s/^$1=//p" <<<"$service")
    [ -n "$value" ] || fail "the unit does not say $1"
    echo "$value"
}

for key in DynamicUser NoNewPrivileges PrivateTmp; do
    [ "$(setting "$key")" = yes ] || fail "the unit says $key=$(setting "$key"), which this script does not do"
done
[ "$(setting ProtectSystem)" = strict ] || fail 'this script does ProtectSystem=strict'

# block LANGUAGE: the block of the documentation that an administrator copies.
block() {
    local text
    text=$(awk -v fence="\`\`\`$1" '/^## / { here = /^## As a service/ } here && /^```/ { if (taken) exit; taken = $0 == fence; next } taken' "$root/docs/serve.md")
    [ -n "$text" ] || fail "docs/serve.md has no block $1 for the unit"
    # Where there is no such group, another one of the machine stands for it.
    sed "s/\bkvm\b/$group/" <<<"$text"
}
group=kvm
getent group "$group" >/dev/null || group=daemon
gid=$(getent group "$group" | cut -d: -f3)
drop_in=$(block ini)
supplementary=$(sed -n 's/^SupplementaryGroups=//p' <<<"$drop_in")
[ "$supplementary" = "$group" ] || fail "the drop-in of the documentation gives no group: $drop_in"

# Users without a name, of those that systemd gives to DynamicUser=yes: the server, one in the group, one outside.
dynamic=61234
member=61235
outsider=61236

# The machine as the unit finds it. The program has to be where another user gets to it.
cp "$headtime" "$work/headtime"
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /var/lib
install -D -m 755 "$work/headtime" /run/usr/headtime
mkdir /run/etc
configuration() { # as standard input
    cat >/run/etc/serve.toml
}
command_line() { # key
    local line
    line=$(setting "$1")
    [[ $line = '/usr/bin/headtime '*' /etc/headtime/serve.toml'* ]] || fail "$1=$line"
    line=${line/\/usr\/bin\/headtime//run/usr/headtime}
    echo "${line/\/etc\/headtime//run/etc}"
}

# What systemd makes for a dynamic user: /var/lib/NAME leads to a directory that nobody else gets to.
mkdir -m 700 /var/lib/private
mkdir -m "$(setting StateDirectoryMode)" "/var/lib/private/$(setting StateDirectory)"
ln -s "private/$(setting StateDirectory)" "/var/lib/$(setting StateDirectory)"
chown "$dynamic:$dynamic" "/var/lib/private/$(setting StateDirectory)"
runtime=/run/$(setting RuntimeDirectory)
runtime_directory() {
    rm -rf "$runtime"
    mkdir -m "$(setting RuntimeDirectoryMode)" "$runtime"
    chown "$dynamic:$dynamic" "$runtime"
}
socket=$runtime/nbd.sock
control=$runtime/control.sock

# Of capabilities and limits, what root itself may not do here cannot be given to another user; none of it is about sockets.
held=,$(setpriv --dump | sed -n 's/^Capability bounding set: //p'),
capabilities() { # key
    local name list=-all
    for name in $(setting "$1"); do
        name=${name#CAP_}
        if [[ $held = *",${name,,},"* ]]; then list+=,+${name,,}; fi
    done
    echo "$list"
}
limits=()
for key in RTPRIO MEMLOCK NOFILE; do
    limit=--${key,,}=$(setting "Limit$key" | sed s/infinity/unlimited/)
    if prlimit "$limit" true 2>/dev/null; then limits+=("$limit"); else echo "unit: Limit$key cannot be put in force on this machine"; fi
done
for name in $(setting CapabilityBoundingSet); do
    name=${name#CAP_}
    [[ $held = *",${name,,},"* ]] || echo "unit: CAP_$name cannot be put in force on this machine"
done

# in_unit GROUPS COMMAND...: as the unit would run it, in place of this shell. The server's mount of / is read-only, /tmp its own; inside
# /var/lib/private a dynamic user finds what is its own, as systemd puts a directory there that can be passed.
in_unit() {
    local groups=--clear-groups
    [ -z "$1" ] || groups=--groups=$1
    shift
    # shellcheck disable=SC2016
    exec unshare --mount --propagation private bash -euc '
        mkdir -p /run/own
        mount --bind "/var/lib/private/$1" /run/own
        mount -t tmpfs -o mode=755 none /var/lib/private
        mkdir "/var/lib/private/$1"
        mount --move /run/own "/var/lib/private/$1"
        mount -o remount,bind,ro /
        mount -t tmpfs -o mode=1777 none /tmp
        umask "$2"
        cd "$3"
        shift 3
        exec "$@"' unit "$(setting StateDirectory)" "$(setting UMask)" "$(setting WorkingDirectory)" \
        prlimit "${limits[@]}" setpriv --reuid="$dynamic" --regid="$dynamic" "$groups" --no-new-privs --bounding-set="$(capabilities CapabilityBoundingSet)" \
        --inh-caps="$(capabilities AmbientCapabilities)" --ambient-caps="$(capabilities AmbientCapabilities)" "$@"
}

# start GROUPS: checks, starts, waits.
start() {
    local line
    read -ra line <<<"$(command_line ExecStartPre)"
    (in_unit "$1" "${line[@]}") >"$work/check.out" 2>"$work/server.err" || fail 'the check'
    read -ra line <<<"$(command_line ExecStart)"
    in_unit "$1" "${line[@]}" >"$work/server.out" 2>"$work/server.err" &
    server=$!
    wait_for 20 nbdinfo --size "$(uri vm1)"
}

# as USER GROUPS COMMAND...: a client.
as() {
    local user=$1 groups=--clear-groups
    [ -z "$2" ] || groups=--groups=$2
    shift 2
    setpriv --reuid="$user" --regid="$user" "$groups" --inh-caps=-all "$@"
}

# refused WHO COMMAND...: and for no other reason.
refused() {
    local who=$1
    shift
    if "$@" >"$work/refused.out" 2>&1; then fail "$who is let in: $*"; fi
    grep -q 'Permission denied' "$work/refused.out" || fail "$who: $*: $(cat "$work/refused.out")"
}

permissions() { # path, mode, user, group
    [ "$(stat -c '%a %u %g' "$1")" = "$2 $3 $4" ] || fail "$1 is $(stat -c '%a %u %g' "$1") and not $2 $3 $4"
}

runtime_directory
block toml | configuration
start "$gid"
grep -qx "Uid:[[:space:]]*$dynamic[[:space:]].*" "/proc/$server/status" || fail 'the server has another user'
[ "$(sed -n 's/^CapEff:\t*//p' "/proc/$server/status")" = "$(sed -n 's/^CapBnd:\t*//p' "/proc/$server/status")" ] || fail 'the server lacks capabilities'
! grep -q WARN "$work/server.err" || fail "a warning: $(grep WARN "$work/server.err")"
permissions "$runtime" "$(setting RuntimeDirectoryMode | sed 's/^0//')" "$dynamic" "$dynamic"
permissions "$socket" 660 "$dynamic" "$gid"
permissions "$control" 600 "$dynamic" "$dynamic"
grep -qx "nbd at unix:$socket, 0660, group $group" "$work/check.out" || fail "the check says: $(cat "$work/check.out")"
echo 'unit: the server runs as it says, and its sockets are as documented'

[ "$(as "$member" "$gid" nbdinfo --size "$(uri vm1)")" = $((4 << 30)) ] || fail 'nbdinfo in the group'
# The library is the system's Python's.
PATH=/usr/bin:$PATH as "$member" "$gid" nbdsh -u "$(uri vm1)" -c '
h.pwrite(b"member" * 1024, 1 << 20)
h.flush()
assert h.pread(6144, 1 << 20) == b"member" * 1024
' || fail 'nbdsh in the group'
echo "unit: a client of another user in the group $group reads and writes"

refused 'one outside' as "$outsider" '' nbdinfo --size "$(uri vm1)"
refused 'one in another group' as "$outsider" "$outsider" nbdinfo --size "$(uri vm1)"
for who in "$member $gid" "$outsider "; do
    refused "$who" as "${who% *}" "${who#* }" /run/usr/headtime control "$control" status
    refused "$who" as "${who% *}" "${who#* }" ls "$runtime"
    refused "$who" as "${who% *}" "${who#* }" flock --nonblock "$runtime" true
    refused "$who" as "${who% *}" "${who#* }" cat "/var/lib/$(setting StateDirectory)/vm1.img"
done
as "$dynamic" '' /run/usr/headtime control "$control" status >/dev/null || fail 'the control socket is not its owner'"'"'s'
/run/usr/headtime control "$control" status >/dev/null || fail 'the control socket is not for root'
echo 'unit: who is not in the group is refused; control, directories and stores are for nobody else'

# ExecReload, with a group that the server could not give its socket to any more.
block toml | sed 's/^group = .*/mode = "0666"/' | configuration
read -ra line <<<"$(setting ExecReload)"
"${line[@]/\$MAINPID/$server}"
wait_for 20 grep -q 'listen: mode or group: another value takes a restart' "$work/server.err"
permissions "$socket" 660 "$dynamic" "$gid"
stop
if [ -e "$socket" ] || [ -e "$control" ]; then fail 'the sockets are still there'; fi
[ -s "/var/lib/private/$(setting StateDirectory)/vm1.img" ] || fail 'the store is not where the unit has it'
echo 'unit: a reload says what takes a restart; the end leaves no sockets'

# Without the drop-in it does not start, and says why. 3 is what RestartPreventExitStatus has.
runtime_directory
block toml | configuration
read -ra line <<<"$(command_line ExecStartPre)"
status=0
(in_unit '' "${line[@]}") >"$work/check.out" 2>&1 || status=$?
[ "$status" = 3 ] || fail "the check of a unit without its group ends with $status: $(cat "$work/check.out")"
[[ " $(setting RestartPreventExitStatus) " = *' 3 '* ]] || fail 'it would be started again and again'
grep -q "serve.toml:[0-9]*: listen.group: \"$group\": .*SupplementaryGroups=" "$work/check.out" || fail "it does not say what to do: $(cat "$work/check.out")"
# Without `group` it needs no drop-in, and lets nobody in.
block toml | sed '/^group = /d' | configuration
start ''
permissions "$socket" 600 "$dynamic" "$dynamic"
refused 'one in the group' as "$member" "$gid" nbdinfo --size "$(uri vm1)"
stop
echo 'unit: what lacks a half is refused, and private by default'

if command -v systemd-analyze >/dev/null; then
    mkdir -p "$work/headtime.service.d"
    cat >"$work/headtime.service.d/override.conf" <<<"$drop_in"
    sed "s,/usr/bin/headtime,/run/usr/headtime," "$unit" >"$work/headtime.service"
    systemd-analyze verify --man=no "$work/headtime.service" >"$work/verify.out" 2>&1 || fail "systemd-analyze verify: $(cat "$work/verify.out")"
    # Of what it does not know it only warns.
    ! grep 'headtime' "$work/verify.out" >&2 || fail 'systemd-analyze verify'
    echo 'unit: systemd-analyze: verified'
    if systemd-analyze --help | grep -q -- --offline; then
        # In tenths; what a change adds has to be meant.
        systemd-analyze security --no-pager --offline=true --threshold=20 "$work/headtime.service" >"$work/security.out" 2>&1 ||
            fail "systemd-analyze security: $(tail -n 3 "$work/security.out")"
        echo "unit: systemd-analyze: $(grep -o 'exposure level.*: [0-9.]*' "$work/security.out")"
    fi
else
    echo 'unit: SKIPPED: systemd-analyze is not installed'
fi
echo 'unit: who may connects, and nobody else'

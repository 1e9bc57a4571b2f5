#!/usr/bin/env bash
# MPI programs with run-time goals on a shared file system: GlusterFS over three emulated disks, one volume for each program, its bricks on the program's
# exports of the disks. Two programs of mpi4py (MPI.File: one reads in sequence and then collectively, the other strided and then at random) and a backup.
#
#   mpirun | GlusterFS | ext4 | loop device | FUSE | Headtime | emulated disk | sparse file
#
# Takes the profiles of both programs, and then runs all three together: without windows, and with windows. Prints a table.
#
#   benches/live/mpi.sh [--goal TIMES] [--scale N] [--smoke]
#
# --goal   goals of both programs as multiples of their runs alone; 2.5 if not given
# --scale  MB that the first program reads, in hundreds; 15 if not given
# --smoke  shows that all parts run: a small scale, and windows alone
# A row counts if under 1 % of the completions were more than 0.5 ms late; other rows are marked `!`.
# Needs root, FUSE, loop devices, glusterd, mpirun, Debian's mpi4py and jq; ends with code 77 where they are missing. Runs in a network namespace of its own, so
# that GlusterFS listens to nobody outside.
set -euo pipefail
if [ -z "${HEADTIME_MPI_INSIDE:-}" ] && [ "$(id -u)" = 0 ]; then
    HEADTIME_MPI_INSIDE=yes exec unshare --net --mount "$0" "$@"
fi
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
goal=2.5 scale=15 smoke=
while [ $# -gt 0 ]; do
    case $1 in
    --goal) goal=$2 && shift ;;
    --scale) scale=$2 && shift ;;
    --smoke) smoke=yes scale=2 ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
    shift
done
need_devices
need_tools losetup mkfs.ext4 glusterd gluster mpirun jq unshare ip
python=/usr/bin/python3
"$python" -c 'import mpi4py' 2>/dev/null || skip "$python has no mpi4py (python3-mpi4py)"
need
address=10.99.0.1
ip link set lo up
ip addr add $address/32 dev lo
volumes=(report index backup)
starts=([0]=0 [1]=60 [2]=110)
span=12 # GiB of each export

cat >"$work/program.py" <<'PYTHON'
"""report PATH MEGABYTES | index PATH MEGABYTES: reads of one file by all ranks."""
import random
import sys

from mpi4py import MPI

kind, path, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
size = megabytes << 20
file = MPI.File.Open(world, path, MPI.MODE_RDONLY)
if kind == "report":
    # Each rank a part of the first half in sequence; then the second half together.
    buffer = bytearray(1 << 20)
    part = size // 2 // ranks
    for offset in range(0, part, len(buffer)):
        file.Read_at(rank * part + offset, buffer)
    world.Barrier()
    for offset in range(size // 2, size, ranks * len(buffer)):
        file.Read_at_all(offset + rank * len(buffer), buffer)
else:
    # Every fourth block of 64 KiB of the first half; then blocks at random.
    block = 64 << 10
    buffer = bytearray(4 * block)
    blocks = MPI.BYTE.Create_vector(1, block, block).Create_resized(0, ranks * block)
    blocks.Commit()
    file.Set_view(rank * block, MPI.BYTE, blocks)
    for _ in range(size // 8 // ranks // len(buffer)):
        file.Read(buffer)
    file.Set_view(0, MPI.BYTE, MPI.BYTE)
    world.Barrier()
    draw, buffer = random.Random(rank), bytearray(block)
    for _ in range(size // 16 // ranks // block):
        file.Read_at(draw.randrange(size // block) * block, buffer)
file.Close()
PYTHON

g() { timeout 60 gluster --mode=script "$@" >>"$work/gluster.log" 2>&1 || fail "gluster $*: $(tail -n 3 "$work/gluster.log")"; }

# settings: three disks with an export for each program.
settings() {
    local disk number
    for disk in 0 1 2; do
        printf '[[disk]]\nname = "disk%s"\nemulate = "barracuda-7200.10-160"\nstore = "%s/store%s"\ndepth = 8\ngate = "windows"\nscheduler = "cfq"\n' $disk "$work" $disk
        for number in 0 1 2; do
            printf '[[disk.export]]\nname = "%s%s"\nrange = "%sGiB..%sGiB"\n' \
                "${volumes[number]}" $disk "${starts[number]}" $((starts[number] + span))
        done
    done
    for number in 0 1 2; do
        name=${volumes[number]}
        printf '[[qos.program]]\nname = "%s"\nexports = ["%s0", "%s1", "%s2"]\n' "$name" "$name" "$name" "$name"
        [ ! -s "$work/$name.profile" ] || printf 'profile = "%s"\n' "$work/$name.profile"
    done
    printf '[listen]\ncontrol = "unix:%s"\n' "$control"
}

quietly() { "$@" >/dev/null 2>&1; }

brick() { echo "$work/bricks/$1$2"; }

# mount_bricks DEVICE_OF: a file system for each export. DEVICE_OF NAME DISK prints the device.
mount_bricks() {
    local name disk
    for name in "${volumes[@]}"; do
        for disk in 0 1 2; do
            mkdir -p "$(brick "$name" $disk)"
            mount -o noatime "$("$1" "$name" $disk)" "$(brick "$name" $disk)"
            on_exit umount "$(brick "$name" $disk)"
        done
    done
}

# gluster_up: the volumes are mounted at $work/volumes/NAME.
gluster_up() {
    local name
    for name in "${volumes[@]}"; do
        g volume start "$name"
        on_exit quietly gluster --mode=script volume stop "$name" force
        mkdir -p "$work/volumes/$name"
        mount -t glusterfs -o direct-io-mode=enable $address:/"$name" "$work/volumes/$name"
        on_exit umount "$work/volumes/$name"
    done
}

# GlusterFS keeps its volumes and sockets here. In this mount namespace the folders are the script's own, so that the machine's volumes stay.
for folder in /var/lib/glusterd /var/log/glusterfs /var/run/gluster; do
    mkdir -p "$folder" "$work/gluster/$folder"
    mount --bind "$work/gluster/$folder" "$folder"
    on_exit umount "$folder"
done
glusterd --log-level WARNING --pid-file "$work/glusterd.pid"
on_exit end_gluster
end_gluster() {
    local pid
    pid=$(cat "$work/glusterd.pid")
    kill "$pid"
    wait_for 20 eval "! kill -0 $pid"
}
wait_for 20 gluster --mode=script pool list
prepared=${#undos[@]}

# At the machine's speed: file systems on parts of the disks' files, volumes, and a file in each.
declare -A part
part_of() { echo "${part[$1$2]}"; }
say 'file systems and files'
bytes=$("$headtime" drive show barracuda-7200.10-160 --format json | jq '.capacity_bytes')
for disk in 0 1 2; do
    truncate --size "$bytes" "$work/store$disk"
    for number in 0 1 2; do
        device=$(losetup --find --show --offset=$((starts[number] << 30)) --sizelimit=$((span << 30)) "$work/store$disk")
        on_exit losetup --detach "$device"
        mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1,nodiscard "$device"
        part[${volumes[number]}$disk]=$device
    done
done
mount_bricks part_of
for name in "${volumes[@]}"; do
    for disk in 0 1 2; do mkdir "$(brick "$name" $disk)/data"; done
    g volume create "$name" "$address:$(brick "$name" 0)/data" "$address:$(brick "$name" 1)/data" "$address:$(brick "$name" 2)/data"
    # A file lies on all disks, in pieces.
    g volume set "$name" features.shard on
    g volume set "$name" features.shard-block-size 4MB
    # Nothing is kept or read ahead in GlusterFS, which would hide the disks.
    for key in io-cache quick-read read-ahead open-behind; do g volume set "$name" performance.$key off; done
done
gluster_up
megabytes=$((100 * scale))
for name in "${volumes[@]}"; do
    head -c "${megabytes}M" /dev/urandom >"$work/volumes/$name/file"
done
sync
undo_to "$prepared"

# On the emulated disks.
device_of() { grep -o "/dev/loop[0-9]* .*$1$2\|$1$2.*/dev/loop[0-9]*" "$work/attach.out" | grep -o '/dev/loop[0-9]*' | head -n 1; }
up() {
    settings >"$work/serve.toml"
    attach --loop
    on_exit detach
    mount_bricks device_of
    gluster_up
}

cold() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}

ask() { "$headtime" control "$control" "$@"; }

# run PROGRAM: prints the run time in seconds.
run() {
    local from=$EPOCHREALTIME
    (cd "$work" && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 4 --mca btl self,vader --mca oob_tcp_if_include lo \
        "$python" "$work/program.py" "$1" "$work/volumes/$1/file" "$megabytes") >"$work/$1.out" 2>&1 || fail "$1: $(tail -n 5 "$work/$1.out")"
    jq -n "$EPOCHREALTIME - $from"
}

# backup: three readers of a file, each from a place of its own, in a process group.
backup() {
    FILE="$work/volumes/backup/file" MEGABYTES=$megabytes exec setsid bash -c '
        for reader in 0 1 2; do
            while :; do dd if="$FILE" of=/dev/null bs=1M skip=$((reader * MEGABYTES / 3)) iflag=direct 2>/dev/null; done &
        done
        wait'
}

# backup_mb: what the disks have read for the backup, in MB.
backup_mb() { ask status --json | jq '[.disks[].exports[] | select(.name | startswith("backup")).bytes.read] | add / 1e6'; }

# end_backup: of the row, if there is one.
behind=
end_backup() {
    [ -n "$behind" ] || return 0
    kill -TERM -- -"$behind" 2>/dev/null || true
    wait "$behind" 2>/dev/null || true
    behind=
}

declare -A alone
say 'profiles'
up
for name in report index; do
    cold
    ask qos profile $name start >/dev/null
    alone[$name]=$(run $name)
    ask qos profile $name stop >"$work/$name.profile"
    say "$name: $(jq -n "${alone[$name]} * 10 | round | . / 10") s alone"
done
undo_to "$prepared"

# row NAME GATE
row() {
    local name before running=() late from took
    up
    on_exit end_backup
    for disk in 0 1 2; do [ "$2" = windows ] || ask gate disk$disk "$2" >/dev/null; done
    cold
    if [ "$2" = windows ]; then for name in report index; do ask qos goal $name "${goal}x" >/dev/null; done; fi
    before=$(backup_mb)
    from=$EPOCHREALTIME
    backup &
    behind=$!
    for name in report index; do
        run $name >"$work/$name.time" &
        running+=($!)
    done
    wait "${running[@]}"
    took=$(jq -n "$EPOCHREALTIME - $from")
    end_backup
    late=$(ask status --json | jq -r '[.disks[].lateness_ms.late_share] | if max > 0.01 then " !" else "" end')
    printf '| %s%s |' "$1" "$late"
    for name in report index; do
        jq -nr "$(cat "$work/$name.time") as \$took | (${alone[$name]} * $goal) as \$goal |
            \" \(\$took * 10 | round | . / 10) s, \((\$took / \$goal - 1) * 1000 | round | . / 10) % late |\"" | tr -d '\n'
    done
    jq -nr "\" \(($(backup_mb) - $before) / $took * 10 | round | . / 10) |\""
    undo_to "$prepared"
}

echo '| | `report` | `index` | backup, MB/s |'
echo '|---|---|---|---|'
[ -n "$smoke" ] || row 'cfq alone' depth
row windows windows

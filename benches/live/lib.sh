# shellcheck shell=bash
# What the benchmarks of this folder that mount file systems share: a disk image, the stack above it, and what Linux's schedulers are told.
# The rest is that of the live tests.
#
#   programs | ext4 | loop device (the kernel's scheduler) | FUSE | Headtime (its scheduler) | emulated drive | sparse file
#
# The image is in memory, /dev/shm, if that has 4 GB, unless HEADTIME_LIVE_DIR says otherwise.
if [ -z "${HEADTIME_LIVE_DIR:-}" ] && [ -w /dev/shm ] && [ "$(df --output=avail -B1M /dev/shm | tail -1)" -gt 4000 ]; then
    HEADTIME_LIVE_DIR=/dev/shm
fi
source "$(dirname "${BASH_SOURCE[0]}")/../../tests/live/lib.sh"

profile=wd5000aaks
bytes=500107862016 # of that drive
# As automake has it.
skipped=77

# begin TOOL...: what is needed, a binary, and the places to work in.
begin() {
    need_devices
    need_tools losetup mkfs.ext4 fsck.ext4 filefrag fallocate "$@"
    if [ -z "${HEADTIME:-}" ]; then
        (cd "$root" && cargo build --profile dist --quiet --package headtime-cli)
        headtime=$target/dist/headtime
    fi
    need
    mkdir "$work/fs"
    machine="$(uname -sr), $(nproc) processors"
    commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
}

# make_image FILE DIRECTORY...: an ext4 file system of the drive's size in a sparse file, mounted at
# $work/fs at the machine's speed, with the directories about 50 GB from each other. ext4 puts small
# files near their directory, and a directory of the root into a group of blocks that a hash of its name
# chooses: of many names, those that lie right are kept. Large files go behind what was written last,
# whatever their directory, which is what `march` is for. Nothing is written but what is there to be read.
make_image() {
    local image=$1 device
    shift
    truncate --size $bytes "$image"
    mkfs.ext4 -q -F -U 6f1f7c0e-0000-4000-8000-000000000001 \
        -E hash_seed=6f1f7c0e-0000-4000-8000-000000000002,lazy_itable_init=1,lazy_journal_init=1,assume_storage_prezeroed=1,nodiscard \
        "$image"
    device=$(losetup --find --show --direct-io=on "$image")
    on_exit losetup --detach "$device"
    mount -o noatime,noinit_itable,mb_optimize_scan=0 "$device" "$work/fs"
    on_exit umount "$work/fs"
    # Else small files share pieces that were set aside for a processor, wherever those are.
    echo 0 >"/sys/fs/ext4/${device#/dev/}/mb_group_prealloc"
    (
        cd "$work/fs"
        seq -f 'try%g' 0 599 | xargs mkdir
        # Inodes of a group: 8192; bytes of a group: 128 MiB.
        stat --format '%i %n' try* |
            awk '{ printf "%.0f %s\n", int(($1 - 1) / 8192) * 134217728, $2 }' | sort -n |
            awk -v names="$*" '
                BEGIN { split(names, name, " "); want = 10e9; k = 1 }
                $1 >= want && (k in name) { print $1, $2, name[k++]; want = $1 + 50.5e9 }' >"$work/places"
        while read -r _ old new; do mv "$old" "$new"; done <"$work/places"
        find . -maxdepth 1 -name 'try*' -exec rmdir {} +
        mkdir fill
    )
}

# march DIRECTORY: fills the disk up to where that directory lies, without writing, so that what is made
# next lies there, large or small. `close_image` takes the filling away.
march() {
    local place last=0 left
    place=$(awk -v name="$1" '$3 == name { print $1 }' "$work/places")
    sync --file-system "$work/fs"
    while :; do
        left=$((place - last))
        [ $left -gt 200000000 ] || break
        [ $left -lt 1200000000 ] || left=1000000000
        fill=$((${fill:-0} + 1))
        fallocate --length $left "$work/fs/fill/$fill"
        last=$(printf '%s\0' "$work/fs/fill/$fill" | extents | cut -d' ' -f2)
    done
}

# close_image: unmounts what make_image mounted.
close_image() {
    rm -r "$work/fs/fill"
    undo
    undo
}

# extents: where the files named on stdin, each ended by a zero byte, lie all together: "first byte, last
# byte, extents".
extents() {
    xargs -0 filefrag -v -b1 | awk '
        $1 ~ /^[0-9]+:$/ {
            gsub(/[.:]/, " ")
            if (n++ == 0 || $4 < first) first = $4
            if ($5 > last) last = $5
        }
        END { printf "%.0f %.0f %d\n", first, last, n }'
}

# check_apart NAME...: fails unless the files of each (a file, or all in a directory) lie within 1.5 GB,
# and begin at least 49 GB after the end of the one before. Says where they are.
check_apart() {
    local name
    for name; do
        echo "${name#"$work/fs/"} $(find "$name" -type f -size +0 -print0 | extents)"
    done | awk '
        {
            printf "%s: %.2f to %.2f GB in %d extents\n", $1, $2 / 1e9, $3 / 1e9, $4
            if ($3 - $2 > 1.5e9) { print "they are scattered"; bad = 1 }
            if (NR > 1 && $2 - end < 49e9) { print "less than 49 GB behind the one before"; bad = 1 }
            end = $3
        }
        END { exit bad }' >&2 || fail "the files do not lie as they should"
}

# make_files IMAGE BYTES FILE...: a file of so many zeroes in each of make_image's directories, in their order.
make_files() {
    local image=$1 size=$2 file
    shift 2
    for file; do
        march "${file%/*}"
        fallocate --length "$size" "$work/fs/$file"
        dd if=/dev/zero of="$work/fs/$file" bs=4M count="$size" iflag=count_bytes oflag=direct conv=notrunc,fsync status=none
        # Zeroes read as zeroes from a hole: the store need not hold them.
        fallocate --dig-holes "$image"
    done
    check_apart "${@/#/$work/fs/}"
}

# stack IMAGE SCHEDULER DEPTH READ_AHEAD: one emulated drive, up to the loop device. READ_AHEAD is a size, or `default` for the
# kernel's. `detach` ends it.
stack() {
    local ahead=()
    [ "$4" = default ] || ahead=(--read-ahead "$4")
    configure "$2" "$3" "emulate = \"$profile\"
store = \"$1\"" "control = \"unix:$control\""
    attach_loop "${ahead[@]}"
    if [ "$4" = default ]; then
        # Told anew that it is a disk with an arm, the kernel sets what it reads ahead on one.
        echo 0 >"$queue/rotational"
        echo 1 >"$queue/rotational"
    fi
    [ "$4" != 128KiB ] || read_ahead_is 128
}

# attach_loop OPTION...: the loop device of $work/serve.toml. Its name is in $loop, its settings are in the folder $queue.
attach_loop() {
    attach --loop "$@"
    queue=/sys/block/${loop#/dev/}/queue
    [ "$(cat "$queue/rotational")" = 1 ] || fail "the kernel takes the loop device for a solid-state drive"
}

read_ahead_is() { # KiB
    [ "$(cat "$queue/read_ahead_kb")" = "$1" ] || fail "read-ahead is $(cat "$queue/read_ahead_kb") KiB, not $1"
}

# kernel_scheduler NAME TAGS: what decides on the loop device. TAGS, at least 4, is how many requests
# it has below it: a scheduler chosen while nr_requests is small keeps that as its device's depth, and
# nr_requests then only bounds what it holds. `none` has the kernel's default unless TAGS is given.
kernel_scheduler() {
    echo none >"$queue/scheduler"
    if [ -n "${2:-}" ]; then
        on_exit kernel_default "$queue"
        echo "$2" >"$queue/nr_requests"
        echo "$1" >"$queue/scheduler"
        if [ "$1" != none ]; then echo 256 >"$queue/nr_requests"; fi
    fi
    grep -q "\[$1\]" "$queue/scheduler" || fail "$queue/scheduler does not take $1"
}
# The kernel keeps the tags of a loop device after it is detached. Writing the number it has changes nothing.
kernel_default() {
    echo none >"$1/scheduler"
    echo 127 >"$1/nr_requests"
    echo 128 >"$1/nr_requests"
}

# fs_up: the file system on the loop device, without ext4's thread that reads all over a disk for a
# while after it is mounted.
fs_up() {
    mount -o noatime,noinit_itable,no_prefetch_block_bitmaps "$loop" "$work/fs"
    on_exit fs_down
}
# Programs that were ended a moment ago may have files open still.
fs_down() {
    local try
    for ((try = 0; try < 100; try++)); do
        if umount "$work/fs" 2>/dev/null; then return; fi
        sleep 0.05
    done
    umount "$work/fs"
}
cold() {
    sync --file-system "$work/fs"
    echo 3 >/proc/sys/vm/drop_caches
}

# read_files BYTES PLACE...: fio reads each place with a process of its own, for $seconds after $settle, or to the end if $full is `yes`.
# A place is a file, or DEVICE@OFFSET. Prints "MB/s least most" of the readers.
read_files() {
    local size=$1 place jobs=() offset window=(--time_based --runtime="$seconds" --ramp_time="$settle")
    shift
    [ "${full:-no}" = no ] || window=()
    for place; do
        offset=0
        [[ $place != *@* ]] || offset=${place##*@}
        jobs+=(--name="reader$((${#jobs[@]} / 3))" --filename="${place%@*}" --offset="$offset")
    done
    (cd "$work" && fio --ioengine=psync --rw=read --bs=8k --direct=0 --invalidate=1 --fadvise_hint=0 --size="$size" \
        "${window[@]}" --output-format=terse --terse-version=3 "${jobs[@]}") >"$work/fio"
    # Terse fields: 5 error, 6 KiB read, 9 ms.
    awk -F';' -v full="${full:-no}" -v readers=$# '
        $1 == 3 {
            if ($5 != 0) bad = 1
            rate = $6 * 1024 / ($9 * 1000)
            if (n++ == 0 || rate < least) least = rate
            if (rate > most) most = rate
            sum += rate; bytes += $6 * 1024; if ($9 > ms) ms = $9
        }
        END {
            if (bad || n != readers) exit 1
            printf "%.2f %.2f %.2f\n", full == "yes" ? bytes / (ms * 1000) : sum, least, most
        }' "$work/fio" || fail "fio failed: $(cat "$work/fio")"
}

# lateness: of the emulated drive, "p99.9 in ms, percent over 0.5 ms", as the server has measured it.
lateness() {
    "$headtime" control "$control" status --json >"$work/status.json"
    jq -r '.disks[0].lateness_ms | [.p999, .late_share * 100] | map(. * 1000 | round / 1000) | join(" ")' "$work/status.json"
}

# record_start, record_stop: the requests of the loop device go into the file $recording, if that is not
# empty. The recorder is told to end, and then writes.
recording='' recorder=
record_start() {
    [ -n "$recording" ] || return 0
    "$headtime" trace record "$loop" --for 120s -o "$recording" >"$work/record.out" 2>&1 &
    recorder=$!
    sleep 1
}
record_stop() {
    [ -n "$recorder" ] || return 0
    kill -TERM $recorder 2>/dev/null || true
    wait $recorder || fail "trace record failed: $(cat "$work/record.out")"
    cat "$work/record.out" >&2
    recorder=
}

# print_table RESULTS LIMIT: a row for each name, of lines "name;MB/s;least;most;p99.9 ms;percent late". The run with the median
# throughput stands for a row. `!` marks a row of which a run has more than LIMIT percent late.
print_table() {
    awk -F';' -v limit="$2" '
        { if (!($1 in n)) order[++rows] = $1; line[$1, n[$1]++] = $0; if ($6 > worst[$1]) worst[$1] = $6 }
        END {
            print "| row | MB/s | x noop | slowest reader | fastest | range of runs | lateness p99.9 ms | over 0.5 ms |"
            print "|---|---|---|---|---|---|---|---|"
            for (r = 1; r <= rows; r++) {
                name = order[r]; count = n[name]
                for (i = 1; i < count; i++)
                    for (j = i; j > 0; j--) {
                        split(line[name, j], x); split(line[name, j - 1], y)
                        if (x[2] < y[2]) { t = line[name, j]; line[name, j] = line[name, j - 1]; line[name, j - 1] = t }
                    }
                split(line[name, 0], low); split(line[name, count - 1], high)
                split(line[name, int((count - 1) / 2)], f)
                # Compared with noop under the same circumstances, which the name tells behind a comma.
                about = match(name, /, /) ? substr(name, RSTART) : ""
                if (name == "noop" about) noop[about] = f[2]
                printf "| `%s` | %.1f | %s | %.1f | %.1f | %.1f to %.1f | %s | %s %%%s |\n", name, f[2],
                    noop[about] ? sprintf("%.2f", f[2] / noop[about]) : "", f[3], f[4], low[2], high[2], f[5], f[6], (worst[name] > limit ? " !" : "")
            }
        }' "$1"
}

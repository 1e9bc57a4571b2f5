#!/usr/bin/env bash
# Real programs on an emulated disk: what schedulers inside Headtime make of them, and what Linux's own
# make of the same disk. Prints a table: seconds, but transactions a second for pgbench and PostMark.
#
#   benches/live/programs.sh [--only NAME,..] [--rows NAME,..] [--repeat N] [--traces DIRECTORY]
#
# --only     grep, postmark, pgbench, scan, cp
# --rows     noop, deadline, stream, linux-none, linux-mq-deadline, linux-bfq; and, not unless they are named, some with a
#            reader of the whole disk beside the program, whose MB/s stand behind the figure:
#            noop-scrub, stream-scrub   `headtime scrub` of the row before the hyphen, in gaps and in idle time
#            noop-cat                   `cat DEVICE >/dev/null`
#            linux-bfq-idle-cat         the same under `ionice -c3`
#            noop-capped                reads of 256 KiB in order, 10 MB/s at most
# --repeat   the median of N runs of each
# --traces   records each program of the row noop there (`headtime trace record`)
#
# grep      `grep -r` for a word that is not there, in two copies of a made-up source tree, 50 GB apart:
#           1,800 files in 110 directories, sizes log-normal with the median and spread of Linux's source
#           (5.6 kB, 1.27)
# postmark  four of Debian's PostMark, 50 GB apart, 5,000 files of its default sizes each and its default
#           of 500 transactions. When all have made their files they are stopped, the files' data are
#           written and taken out of memory (names and inodes stay), and they go on: only transactions
#           are timed
# pgbench   `pgbench -S` of 8 clients for 15 s on 1,000,000 accounts, nothing in memory
# scan      `select count(*)` of two tables of 150 MB, 50 GB apart, at once, without parallel workers
# cp        `cp -r` of both source trees at once, each beside itself, with the sync that follows
#
# Before each the disk's image is made anew from a copy and caches are dropped; after each the file system
# is checked (`fsck -fn`). Needs root, FUSE, loop devices, jq, postmark, PostgreSQL (a cluster of its own
# is made); ends with code 77 where they are missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# name; Headtime's scheduler; the kernel's; tags below that; what reads the disk meanwhile
all_rows='
noop;noop;none;
deadline;deadline;none;
stream;stream(deadline);none;
linux-none;noop;none;4
linux-mq-deadline;noop;mq-deadline;4
linux-bfq;noop;bfq;4
noop-scrub;noop;none;;scrub
stream-scrub;stream(deadline);none;;scrub
noop-cat;noop;none;;cat
linux-bfq-idle-cat;noop;bfq;4;idle-cat
noop-capped;noop;none;;capped'
programs=grep,postmark,pgbench,scan,cp rows=noop,deadline,stream,linux-none,linux-mq-deadline,linux-bfq
repeat=1 traces=
while [ $# -gt 0 ]; do
    case $1 in
    --only) programs=$2 && shift ;;
    --rows) rows=$2 && shift ;;
    --repeat) repeat=$2 && shift ;;
    --traces) traces=$(realpath "$2") && shift ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
    shift
done
wanted() { [[ ,$2, == *,$1,* ]]; }
tools=(jq)
! wanted postmark "$programs" || tools+=(postmark)
postgres=no
if wanted pgbench "$programs" || wanted scan "$programs"; then
    postgres=yes
    pgbin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
    [ -x "$pgbin/initdb" ] && [ -x "$pgbin/pgbench" ] || skip "needs PostgreSQL's server (/usr/lib/postgresql)"
    pguser=$(id -nu postgres 2>/dev/null || echo nobody)
fi
begin "${tools[@]}"
chmod 711 "$work"

# make_tree DIRECTORY: the source tree. Its own generator of random numbers (Lehmer, 48271), so that every
# awk makes the same.
make_tree() {
    awk -v top="$1" '
        function random() { state = state * 48271 % 2147483647; return state / 2147483647 }
        BEGIN {
            state = 20111
            for (d = 0; d < 110; d++) {
                # A third of the directories are of the root, the others in one of those before.
                dir[d] = (d == 0 || random() < 0.33 ? top : dir[int(random() * d)]) "/d" d
                print "mkdir -p " dir[d] | "sh"
            }
            close("sh")
            for (f = 0; f < 1800; f++) {
                normal = sqrt(-2 * log(random())) * cos(6.283185307 * random())
                left = int(5600 * exp(1.27 * normal)) + 1
                file = dir[int(random() * 110)] "/f" f ".c"
                while (left > 0) {
                    line = sprintf("static int value_%d(int n) { return n + %d; }", random() * 1e6, random() * 1e9)
                    printf "%s\n", substr(line, 1, left) >file
                    left -= length(line) + 1
                }
                close(file)
            }
        }'
}

as_postgres() { (cd "$work/pg" && setpriv --reuid="$pguser" --regid="$(id -g "$pguser")" --clear-groups env PATH="$pgbin:$PATH" "$@"); }
postgres_up() {
    as_postgres pg_ctl start --silent --wait --timeout 120 -D "$work/fs/a/pg" -l "$work/pg/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$work/pg $*" >/dev/null
    on_exit postgres_down
}
postgres_down() { as_postgres pg_ctl stop --silent --wait --timeout 120 --mode fast -D "$work/fs/a/pg"; }
sql() { as_postgres psql -qAtX -h "$work/pg" -d postgres -v ON_ERROR_STOP=1 "$@"; }
# A table of 150 MB, with what a scan would otherwise write at its first time already there.
table() {
    sql <<<"create table $1 $2 as select n as id, repeat('x', 60) as filler from generate_series(1, 1600000) n; vacuum freeze analyze $1"
}

make_image "$work/pristine" a b c d
march a
if wanted grep "$programs" || wanted cp "$programs"; then
    mkdir "$work/fs/a/tree"
    make_tree "$work/fs/a/tree"
fi
mkdir "$work"/fs/{a,b,c,d}/postmark
if [ $postgres = yes ]; then
    mkdir "$work/pg" "$work/fs/a/pg" "$work/fs/b/space"
    chown "$pguser" "$work/pg" "$work/fs/a/pg" "$work/fs/b/space"
    as_postgres initdb -D "$work/fs/a/pg" --auth=trust --username="$pguser" --no-sync --no-instructions \
        --encoding=UTF8 --locale=C >/dev/null
    cat >>"$work/fs/a/pg/postgresql.conf" <<'CONF'
wal_level = minimal
max_wal_senders = 0
max_wal_size = 128MB
shared_buffers = 32MB
autovacuum = off
max_parallel_workers_per_gather = 0
CONF
    postgres_up -c fsync=off
    as_postgres pgbench --quiet -i -s 10 -h "$work/pg" postgres 2>/dev/null
    table here ''
fi
sync --file-system "$work/fs"
march b
if [ -d "$work/fs/a/tree" ]; then cp -r "$work/fs/a/tree" "$work/fs/b/tree"; fi
if [ $postgres = yes ]; then
    sql -c "create tablespace space location '$work/fs/b/space'"
    table there 'tablespace space'
    sql -c checkpoint
    tables=("$work/fs/a/pg/$(sql -c "select pg_relation_filepath('here')")"
        "$work/fs/a/pg/$(sql -c "select pg_relation_filepath('there')")")
    tables[1]=$(realpath "${tables[1]}")
    undo
fi
sync --file-system "$work/fs"
[ ! -d "$work/fs/a/tree" ] || check_apart "$work/fs/a/tree" "$work/fs/b/tree"
[ $postgres = no ] || check_apart "${tables[@]}"
close_image

# timed COMMAND...: its seconds.
timed() {
    local start=$EPOCHREALTIME
    "$@" >&2
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f\n", b - a }'
}

run_grep() {
    local k pids=() code
    for k in a b; do
        grep -r 'a word that is not there' "$work/fs/$k/tree" &
        pids+=($!)
    done
    for k in "${pids[@]}"; do
        code=0
        wait "$k" || code=$?
        [ $code = 1 ] || fail "grep ended with code $code"
    done
}

run_cp() {
    local k pids=()
    for k in a b; do
        cp -r "$work/fs/$k/tree" "$work/fs/$k/copy" &
        pids+=($!)
    done
    for k in "${pids[@]}"; do wait "$k"; done
    sync --file-system "$work/fs"
}

run_scan() {
    local table pids=()
    for table in here there; do
        sql -c "select count(*) from $table" >"$work/count-$table" &
        pids+=($!)
    done
    for table in "${pids[@]}"; do wait "$table"; done
    [ "$(cat "$work/count-here" "$work/count-there")" = $'1600000\n1600000' ] || fail "the tables are not whole"
}

# All of PostMark's outputs have a word.
all_say() { [ "$(grep -l "$1" "${outs[@]}" 2>/dev/null | wc -l)" = ${#outs[@]} ]; }

# The transactions of all a second.
run_postmark() {
    local k pids=() readers=() outs=() start
    for k in a b c d; do
        printf 'set location %s\nset number 5000\nset seed %d\nrun\nquit\n' "$work/fs/$k/postmark" $((${#pids[@]} + 42)) >"$work/postmark-$k"
        mkfifo "$work/pipe-$k"
        (cd "$work" && exec postmark "postmark-$k") >"$work/pipe-$k" </dev/null &
        pids+=($!)
        # It says `Performing transactions` when its files are there, which is the second P of what it
        # says. Told at once, it stops after a few transactions.
        {
            read -r -d P
            read -r -d P
            kill -STOP ${pids[-1]}
            echo made
            cat
        } <"$work/pipe-$k" >"$work/postmark-$k.out" &
        readers+=($!)
        outs+=("$work/postmark-$k.out")
    done
    wait_for 60 all_say made
    sync --file-system "$work/fs"
    echo 1 >/proc/sys/vm/drop_caches
    record_start
    beside_start "$reader"
    start=$EPOCHREALTIME
    kill -CONT "${pids[@]}"
    wait_for 180 all_say Deleting
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f\n", 2000 / (b - a) }'
    for k in "${pids[@]}" "${readers[@]}"; do wait "$k"; done
    rm "$work"/pipe-?
    ! grep -i error "${outs[@]}" >&2
}

# beside_start NAME, beside_stop: what reads the whole disk meanwhile, if anything; its MB/s in $rate afterwards.
beside='' beside_pid='' rate=''
beside_start() {
    beside=$1 rate='' beside_pid=''
    case $beside in
    scrub) "$headtime" scrub "$control" disk0 --no-wait >/dev/null ;;
    cat) cat "$loop" >/dev/null & ;;
    idle-cat) ionice -c3 cat "$loop" >/dev/null & ;;
    capped)
        fio --name=capped --thread --filename="$loop" --readonly --rw=read --bs=256k --direct=1 --rate=10m --output=/dev/null &
        ;;
    *) return 0 ;;
    esac
    [ "$beside" = scrub ] || beside_pid=$!
    read_before=$(read_beside)
    beside_from=$EPOCHREALTIME
}
# Bytes that it has read.
read_beside() {
    if [ "$beside" = scrub ]; then
        "$headtime" scrub "$control" disk0 status --format json |
            jq '(.read.in_gaps + .read.in_idle_time) * .block'
    else
        awk '/^rchar/ { print $2 }' "/proc/$beside_pid/io"
    fi
}
beside_stop() {
    [ -n "$beside" ] || return 0
    rate=$(awk -v a="$beside_from" -v b="$EPOCHREALTIME" -v before="$read_before" -v after="$(read_beside)" \
        'BEGIN { printf "%.2f", (after - before) / (b - a) / 1e6 }')
    if [ "$beside" = scrub ]; then
        "$headtime" scrub "$control" disk0 stop >/dev/null || true
    else
        kill "$beside_pid"
        wait "$beside_pid" || true
    fi
    beside=
}

# run_program NAME: its figure in $figure, unmounted and checked afterwards.
run_program() {
    case $1 in
    pgbench | scan) postgres_up ;;
    esac
    cold
    # Of PostMark, transactions alone.
    if [ "$1" != postmark ]; then
        record_start
        beside_start "$reader"
    fi
    case $1 in
    grep) timed run_grep ;;
    cp) timed run_cp ;;
    scan) timed run_scan ;;
    postmark) run_postmark ;;
    pgbench)
        as_postgres pgbench -n -S -c 8 -j 1 -T 15 -h "$work/pg" postgres 2>/dev/null |
            awk '/^tps/ { printf "%.2f\n", $3; found = 1 } END { exit !found }'
        ;;
    esac >"$work/figure"
    beside_stop
    record_stop
    figure=$(cat "$work/figure")
}

say "$machine; commit $commit; load $(cut -d' ' -f1-3 /proc/loadavg)"
results=$work/results
for program in ${programs//,/ }; do
    while IFS=';' read -r name scheduler kernel tags reader; do
        [ -n "$name" ] && wanted "$name" "$rows" || continue
        for ((run = 0; run < repeat; run++)); do
            recording=
            if [ -n "$traces" ] && [ "$name" = noop ] && [ $run = 0 ]; then recording=$traces/$program.csv.gz; fi
            before=${#undos[@]}
            cp --sparse=always "$work/pristine" "$work/image"
            stack "$work/image" "$scheduler" 1 128KiB
            kernel_scheduler "$kernel" "$tags"
            fs_up
            run_program "$program"
            late=$(lateness)
            undo_to "$before"
            detach
            # The store holds what the disk had been sent when it was detached.
            if fsck.ext4 -fn "$work/image" >"$work/fsck" 2>&1; then clean=clean; else clean="NOT CLEAN"; cat "$work/fsck" >&2; fi
            say "$program, $name: $figure${rate:+; beside it $rate MB/s}; lateness p99.9 ms and % over 0.5 ms: $late; $clean"
            echo "$program;$name;$figure;${late#* };$clean;$rate" >>"$results"
        done
    done <<<"$all_rows"
done
[ -s "$results" ] || fail "no such program or row"

awk -F';' -v rows="$rows" '
    # The mean of the runs.
    function read_beside(rates, each, n, k, sum) {
        n = split(rates, each, " ")
        for (k = 1; k <= n; k++) sum += each[k]
        return n ? sprintf(" (%.2f)", sum / n) : ""
    }
    !($1 in seen) { order[++programs] = $1; seen[$1] = 1 }
    { value[$1, $2, n[$1, $2]++] = $3; if ($6 != "") rates[$1, $2] = rates[$1, $2] " " $6; if ($4 > 0.5) late[$1, $2] = " !"; if ($5 != "clean") dirty = 1 }
    END {
        count = split(rows, row, ",")
        head = "| row |"; rule = "|---|"
        for (p = 1; p <= programs; p++) {
            head = head " " order[p] (order[p] == "pgbench" || order[p] == "postmark" ? " 1/s" : " s") " |"
            rule = rule "---|"
        }
        print head; print rule
        for (r = 1; r <= count; r++) {
            text = "| `" row[r] "` |"
            for (p = 1; p <= programs; p++) {
                m = n[order[p], row[r]]
                for (i = 1; i < m; i++)
                    for (j = i; j > 0 && value[order[p], row[r], j] + 0 < value[order[p], row[r], j - 1] + 0; j--) {
                        t = value[order[p], row[r], j]
                        value[order[p], row[r], j] = value[order[p], row[r], j - 1]
                        value[order[p], row[r], j - 1] = t
                    }
                text = text " " (m ? value[order[p], row[r], int((m - 1) / 2)] : "") read_beside(rates[order[p], row[r]]) late[order[p], row[r]] " |"
            }
            print text
        }
        print ""
        print "In brackets: MB/s of what reads the disk beside the program. `!`: more than 0.5 % of completions came over 0.5 ms late. File system after each: " (dirty ? "NOT CLEAN" : "clean") "."
    }' "$results"
! grep -q 'NOT CLEAN' "$results"
say "took $SECONDS s"

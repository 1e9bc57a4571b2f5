#!/usr/bin/env bash
# Does the advice of `headtime report --like vm+scrub` hold live? An emulated disk is served under today's setting and under each recommended
# one. fio plays the mix over NBD. Prints a table with the rates that the report expects and those that fio measures.
#
#   benches/live/report.sh [--seconds N] [--smoke]
#
# --smoke    5 s each; fails unless each recommended setting gives the readers three times the reads of today's
#
# Needs fio with its NBD engine, and jq; ends with code 77 where they are missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../tests/live/lib.sh"
skipped=77
seconds=30 smoke=no
while [ $# -gt 0 ]; do
    case $1 in
    --seconds) seconds=$2 && shift ;;
    --smoke) smoke=yes seconds=5 ;;
    *)
        sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
    shift
done
need fio jq nbdinfo
uri() { echo "nbd+unix:///vm?socket=$socket"; }
fio --enghelp | grep -qw nbd || skip 'fio has no NBD engine'

"$headtime" report --like vm+scrub --profile exos-x18 --format json >"$work/answer.json" 2>/dev/null
results=$work/results
for row in today linux headtime; do
    at=$([ $row = today ] && echo 0 || jq ".$row.tried" "$work/answer.json")
    jq -r ".tried[$at] | .setting.scheduler, .setting.depth, .setting.gate, .roles[0].iops, .roles[1].mb_s" "$work/answer.json" >"$work/row"
    { read -r scheduler; read -r depth; read -r gate; read -r reads; read -r rate; } <"$work/row"
    configure "$scheduler" "$depth" "emulate = \"exos-x18\"
store = \"memory\"
merge_max = \"1MiB\"
gate = \"$gate\"
export = [{ name = \"vm\" }, { name = \"scrub\", class = \"idle\" }]"
    serve
    (cd "$work" && fio --ioengine=nbd --time_based --ramp_time=2 --runtime="$seconds" --output-format=json --thread --norandommap \
        --name=vm --uri="nbd+unix:///vm?socket=$socket" --rw=randread --bs=16k --iodepth=1 --thinktime=20ms --numjobs=4 --group_reporting --size=100% \
        --name=scrub --new_group --uri="nbd+unix:///scrub?socket=$socket" --rw=read --bs=1m --iodepth=3 --size=100%) \
        >"$work/fio" || fail "fio failed: $(cat "$work/fio")"
    measured=$(sed -n '/^{/,$p' "$work/fio" | jq -r '[.jobs[0].read.iops, .jobs[1].read.bw_bytes / 1e6, .jobs[0].read.clat_ns.percentile."99.000000" / 1e6] | map(. * 10 | round / 10) | join(";")')
    stop
    say "$row: $measured"
    echo "$row;$scheduler, depth $depth, gate $gate;$reads;$rate;$measured" >>"$results"
done
awk -F';' '
    BEGIN { print "| row | setting | vm reads/s, simulated | live | scrub MB/s, simulated | live | live p99 ms of vm |"; print "|---|---|---|---|---|---|---|" }
    { printf "| %s | `%s` | %.1f | %s | %.0f | %.0f | %s |\n", $1, $2, $3, $5, $4, $6, $7 }' "$results"
if [ $smoke = yes ]; then
    awk -F';' 'NR == 1 { today = $5 } NR > 1 && $5 < 3 * today { bad = 1 } END { exit bad }' "$results" || fail 'a recommended setting does not hold live'
fi

#!/usr/bin/env bash
# Programs that others wrote: nbdinfo, nbdcopy, nbdsh, qemu-img, qemu-io, fio, against one server with two exports.
source "$(dirname "$0")/lib.sh"
need nbdinfo nbdcopy nbdsh qemu-img qemu-io fio cmp

# The library is the system's Python's, which need not be the first one that is found.
shell() { PATH=/usr/bin:$PATH command nbdsh "$@" || fail "nbdsh: $2"; }

cat >"$work/serve.toml" <<TOML
[[disk]]
name = "disk0"
device = "$work/file.img"
direct = false
belief = "wd5000aaks"
scheduler = "stream(deadline)"
depth = 8

[[disk.export]]
name = "disk0"
[[disk.export]]
name = "quiet"
class = "idle"
read_only = true

[listen]
nbd = "unix:$socket"
TOML
truncate --size=64M "$work/file.img"
serve

nbdinfo --json --list "nbd+unix:///?socket=$socket" >"$work/info.json"
for word in '"disk0"' '"quiet"' '"base:allocation"' '"export-size": 67108864' '"can_multi_conn": true' '"can_df": true' '"is_rotational": true' '"block_size_minimum": 1'; do
    grep -qF "$word" "$work/info.json" || fail "nbdinfo does not show $word: $(cat "$work/info.json")"
done
echo 'nbdinfo: both exports, sizes, flags'

head -c 67108864 /dev/urandom >"$work/random"
nbdcopy "$work/random" "$(uri)"
nbdcopy --connections=4 "$(uri quiet)" "$work/back"
cmp "$work/random" "$work/back"
echo 'nbdcopy: there and back'

shell -u "$(uri)" -c '
h.pwrite(b"x" * 8192, 4096)
assert h.pread(8192, 4096) == b"x" * 8192
h.zero(4096, 4096)
h.trim(4096, 1 << 20)
h.flush()
assert h.pread(8192, 4096) == bytes(4096) + b"x" * 4096
h.pwrite(b"y" * 512, 0, nbd.CMD_FLAG_FUA)
chunks = []
assert h.pread_structured(8192, 0, lambda data, *rest: chunks.append(len(data)), nbd.CMD_FLAG_DF)[:512] == b"y" * 512
assert chunks == [8192], chunks
h.pwrite(b"odd", 511)
assert h.pread(4, 510) == b"yodd"
h.pwrite(b"y", 511)
for count, offset in ((512, 67108864), (1, 67108864), (0, 0)):
    h.set_strict_mode(0)
    try:
        h.pread(count, offset)
        raise SystemExit("a read of %d at %d succeeds" % (count, offset))
    except nbd.Error:
        pass
assert h.pread(512, 0) == b"y" * 512
'
shell -u "$(uri quiet)" -c '
h.set_strict_mode(0)
try:
    h.pwrite(bytes(512), 0)
    raise SystemExit("a read-only export takes a write")
except nbd.Error as error:
    assert error.errno == "EPERM", error.errno
'
shell -c "
h.set_request_structured_replies(False)
h.connect_uri('$(uri)')
assert h.pread(512, 0) == b'y' * 512
"
echo 'nbdsh: writes, zeroes, trim, FUA, DF, simple replies, errors'

qemu-img info "$(uri)" >/dev/null
qemu-img convert -n -f raw -O raw "$work/random" "$(uri)"
qemu-img compare -f raw -F raw "$work/random" "$(uri)" >/dev/null || fail 'qemu-img compare'
qemu-io -f raw -c 'write -P 0xab 0 1M' -c 'read -P 0xab 0 1M' -c 'write -z 1M 1M' -c 'read -P 0 1M 1M' -c 'discard 2M 1M' -c 'flush' "$(uri)" >"$work/qemu.out"
! grep -i 'failed\|error' "$work/qemu.out" || fail 'qemu-io'
echo 'qemu-img, qemu-io: convert, compare, patterns, zeroes, discard'

fio --name=fio --ioengine=nbd --uri="$(uri)" --rw=randrw --bs=4k --iodepth=32 --size=64m --verify=md5 --verify_state_save=0 --minimal >/dev/null
echo 'fio: verified'
stop
echo 'interop: all of them'

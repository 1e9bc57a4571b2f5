#!/usr/bin/env bash
# TLS with client certificates, for programs that others wrote: nbdinfo, nbdcopy, qemu-img, fio. Wrong and expired certificates of both sides,
# a client without TLS, half a handshake, new certificates while the server runs. 77: a tool or the feature `tls` is missing.
source "$(dirname "$0")/lib.sh"
skipped=77
need nbdinfo nbdcopy qemu-img fio openssl cmp timeout
"$root/tests/live/certificates.sh" "$work/pki"

# configure_tls SERVER: the server has the certificate of this folder.
configure_tls() {
    configure noop 32 "$(in_file "$work/file.img")" "nbd = [\"unix:$socket\", \"tcp:127.0.0.1:0\"]
tls_certificate = \"$work/pki/$1/server-cert.pem\"
tls_key = \"$work/pki/$1/server-key.pem\"
tls_ca = \"$work/pki/ca/ca-cert.pem\"
control = \"unix:$control\""
}
truncate --size=64M "$work/file.img"
configure_tls server

# shows TEXT: the check of the configuration does.
shows() {
    "$headtime" serve "$work/serve.toml" --check >"$work/checked" 2>&1 || true
    grep -q -- "$1" "$work/checked"
}
if shows 'this build has no TLS'; then skip 'the program was built without the feature tls'; fi
must_show() { shows "$1" || fail "the check does not show '$1': $(cat "$work/checked")"; }
must_show '^nbd at tcp:127.0.0.1:0, TLS with client certificates$'
if shows 'may read the key'; then fail 'a closed key is noted'; fi
chmod 644 "$work/pki/server/server-key.pem"
must_show 'listen.tls_key: .*: others than its owner may read the key, by mode 0644'
chmod 600 "$work/pki/server/server-key.pem"
sed -i 's/server-key.pem/..\/alice\/client-key.pem/' "$work/serve.toml"
must_show 'serve.toml:12: listen.tls_key: .*client-key.pem: is not the key of .*server-cert.pem; allowed is'
sed -i 's/"tcp:127.0.0.1:0"/"tcp:192.0.2.1:10809"/; /tls_ca/d' "$work/serve.toml"
must_show 'listen.nbd: tcp:192.0.2.1:10809: other machines reach this address; allowed is'
echo 'check: TLS, an open key, a wrong key, other machines without certificates'

begin() { # server
    configure_tls "$1"
    serve --ready
    port=$(sed -n 's/.* nbd=tcp:127.0.0.1:\([0-9]*\).*/\1/p' "$work/server.out")
}
nbds() { echo "nbds://localhost:$port/disk0?tls-certificates=$work/pki/$1"; }
qemu() { # client, command of qemu-img, what follows the disk
    local who=$1 command=$2
    shift 2
    qemu-img "$command" --object "tls-creds-x509,id=tls0,endpoint=client,dir=$work/pki/$who" \
        --image-opts "driver=nbd,host=localhost,port=$port,export=disk0,tls-creds=tls0" "$@"
}

# said_since COUNT TEXT: true if more lines than COUNT of the server's messages have a text.
said_since() { [ "$(grep -cF -- "$2" "$work/server.err" || true)" -gt "$1" ]; }

# accepted WHO, refused WHO TEXT: by nbdinfo. A refused client learns nothing of the disk, and the server says TEXT, if there is one.
accepted() { timeout 20 nbdinfo --size "$(nbds "$1")" | grep -qx 67108864 || fail "$1 is refused"; }
refused() {
    local before
    before=$(grep -cF -- "$2" "$work/server.err" || true)
    if timeout 20 nbdinfo "$(nbds "$1")" >"$work/refused" 2>&1; then fail "$1 is let in"; fi
    ! grep -q 67108864 "$work/refused" || fail "$1 sees the disk: $(cat "$work/refused")"
    [ -z "$2" ] || wait_for 10 said_since "$before" "$2"
}

begin server
accepted alice
nbdinfo "$(nbds alice)" | grep -q 'protocol: newstyle-fixed with TLS' || fail 'nbdinfo shows no TLS'
refused nobody 'peer sent no certificates'
# GnuTLS sends no certificate that none of the server's authorities has signed.
refused stranger 'peer sent no certificates'
refused expired 'certificate expired'
refused early 'certificate not valid yet'
# This client takes the server for a stranger, and goes without a word.
refused mistaken ''
accepted alice
echo 'nbdinfo: alice is let in; nobody, a stranger, expired and early certificates are not; a stranger is no server'

head -c 67108864 /dev/urandom >"$work/random"
nbdcopy --flush "$work/random" "$(nbds alice)"
cmp "$work/random" "$work/file.img"
nbdcopy --connections=4 "$(nbds alice)" "$work/back"
cmp "$work/random" "$work/back"
echo 'nbdcopy: 64 MiB there and back'

# A reader whose output nobody takes keeps its connection.
nbdcopy "$(nbds alice)" - 2>/dev/null | sleep 60 &
reader=$!
named() { "$headtime" control "$control" status | grep -q "^  disk0 .* $1$"; }
wait_for 10 named 'alice (1)'
"$headtime" control "$control" status --json | grep -q '"alice": 1' || fail 'no client in JSON'
kill "$reader"
wait_for 10 eval '! named "alice.*"'
echo 'status: the name in the certificate, as long as the client is connected'

qemu alice info | grep -q '64 MiB (67108864 bytes)' || fail 'qemu-img info'
qemu alice convert -O raw "$work/converted"
cmp "$work/random" "$work/converted"
if qemu nobody info >"$work/refused" 2>&1; then fail 'qemu-img needs no certificate'; fi
echo 'qemu-img: info, convert; refused without a certificate'

# An URI of fio must name no files. libnbd looks into the home of a user, and elsewhere for root.
mkdir -p "$work/home/.pki"
ln -s "$work/pki/alice" "$work/home/.pki/libnbd"
as_user=()
[ "$(id -u)" != 0 ] || as_user=(unshare --user)
if "${as_user[@]}" true 2>/dev/null; then
    HOME=$work/home "${as_user[@]}" fio --name=fio --ioengine=nbd --uri="nbds://localhost:$port/disk0" --rw=randrw --bs=4k --iodepth=32 --size=64m \
        --verify=md5 --verify_state_save=0 --minimal >"$work/fio.out" || fail "fio: $(cat "$work/fio.out")"
    echo 'fio: verified'
else
    echo 'SKIPPED: fio as root needs user namespaces'
fi

# Without TLS nothing is learned, and nothing is read.
for plain in "nbd://localhost:$port/disk0" "nbd://localhost:$port/"; do
    if nbdinfo --list "$plain" >"$work/refused" 2>&1 || nbdinfo "$plain" >>"$work/refused" 2>&1; then fail "$plain is served"; fi
    ! grep -q disk0: "$work/refused" || fail "$plain shows $(cat "$work/refused")"
done
if qemu-img info "nbd://localhost:$port/disk0" >/dev/null 2>&1; then fail 'qemu-img reads without TLS'; fi
nbdinfo --size "$(uri)" | grep -qx 67108864 || fail 'the unix socket needs TLS'
echo 'downgrade: a client without TLS is refused'

# STARTTLS, and then silence: the server hangs up after ten seconds.
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf '\0\0\0\3IHAVEOPT\0\0\0\5\0\0\0\0' >&3
began=$SECONDS
timeout 30 cat <&3 >"$work/half" || fail 'half a handshake keeps its connection'
exec 3>&-
[ $((SECONDS - began)) -ge 8 ] || fail "half a handshake was ended after $((SECONDS - began)) s"
# Behind the greeting of 18 bytes stands ACK to STARTTLS, and at the end an alert of TLS.
said=$(tail -c +19 "$work/half" | od -An -v -tx1 | tr -d ' \n')
[[ $said = 0003e889045565a9000000050000000100000000* ]] || fail "no answer to STARTTLS: $said"
accepted alice
echo 'half a handshake ends after ten seconds'

# New files in place of the old ones.
cp "$work/pki/ca/ca-cert.pem" "$work/pki/ca/kept.pem"
cp "$work/pki/other-ca/ca-cert.pem" "$work/pki/ca/ca-cert.pem"
kill -HUP "$server"
wait_for 10 grep -q 'the certificates were read again' "$work/server.err"
accepted stranger
refused alice 'peer sent no certificates'
: >"$work/pki/ca/ca-cert.pem"
kill -HUP "$server"
wait_for 10 grep -q 'nothing is changed: .*listen.tls_ca: .*holds no certificate' "$work/server.err"
accepted stranger
mv "$work/pki/ca/kept.pem" "$work/pki/ca/ca-cert.pem"
stop
echo 'SIGHUP: new connections use new certificates'

for name in elsewhere old-server; do
    begin $name
    if timeout 20 nbdinfo "$(nbds alice)" >"$work/refused" 2>&1; then fail "a client trusts $name"; fi
    stop
done
echo 'clients refuse a server of another name, and an expired one'
echo 'tls: all of them'

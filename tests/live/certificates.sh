#!/usr/bin/env bash
# Makes certificates for tests of TLS, in the layout of nbdkit and QEMU:
#
#   tests/live/certificates.sh DIR
#
#   ca/           certificate and key of an authority; other-ca/ of another one
#   server/       server-cert.pem and server-key.pem for localhost and 127.0.0.1
#   old-server/   the same, expired; elsewhere/ for another name
#   alice/        ca-cert.pem, client-cert.pem and client-key.pem of a client
#   expired/      of a client whose certificate has expired; early/ of one whose certificate is not valid yet
#   stranger/     of a client with a certificate of the other authority
#   nobody/       of a client without a certificate; mistaken/ of one that trusts the other authority alone
set -euo pipefail
mkdir -p "$1"
cd "$1"

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$1" 2>/dev/null; }

authority() { # folder
    mkdir "$1"
    key "$1/ca-key.pem"
    openssl req -x509 -key "$1/ca-key.pem" -out "$1/ca-cert.pem" -days 3650 -subj "/CN=$1" -addext keyUsage=critical,keyCertSign
    cat >"$1/ca.conf" <<CONF
[ca]
default_ca = here
[here]
database = $1/index.txt
new_certs_dir = $1
rand_serial = yes
unique_subject = no
default_md = sha256
policy = names
x509_extensions = leaf
[names]
commonName = supplied
[leaf]
basicConstraints = CA:FALSE
subjectAltName = \$ENV::NAMES
extendedKeyUsage = \$ENV::USE
CONF
    : >"$1/index.txt"
}

# certify AUTHORITY FOLDER server|client NAME NAMES [START END]
certify() {
    mkdir -p "$2"
    key "$2/$3-key.pem"
    openssl req -new -key "$2/$3-key.pem" -subj "/CN=$4" -out request.pem
    NAMES=$5 USE=${3}Auth openssl ca -batch -notext -config "$1/ca.conf" -cert "$1/ca-cert.pem" -keyfile "$1/ca-key.pem" -in request.pem \
        -out "$2/$3-cert.pem" -startdate "${6:-20200101000000Z}" -enddate "${7:-20991231000000Z}" 2>errors.txt || { cat errors.txt >&2; exit 1; }
    cp ca/ca-cert.pem "$2/"
}

authority ca
authority other-ca
here=DNS:localhost,IP:127.0.0.1
certify ca server server localhost $here
certify ca old-server server localhost $here 20200101000000Z 20200201000000Z
certify ca elsewhere server elsewhere.example DNS:elsewhere.example
certify ca alice client alice DNS:alice.example
certify ca expired client expired DNS:expired.example 20200101000000Z 20200201000000Z
certify ca early client early DNS:early.example 20990101000000Z 20991231000000Z
certify other-ca stranger client stranger DNS:stranger.example
mkdir nobody mistaken
cp ca/ca-cert.pem nobody/
cp other-ca/ca-cert.pem mistaken/
cp alice/client-*.pem mistaken/

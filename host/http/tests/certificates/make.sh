#!/bin/sh
# Makes the files beside it anew. The authority's key is thrown away.
set -eu
cd "$(dirname "$0")"
here=$PWD
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
cd "$made"
ec="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
# shellcheck disable=SC2086
openssl req -x509 $ec -keyout authority.key -out authority.pem -days 36500 -subj "/CN=rlf-http test authority" \
    -addext "keyUsage=critical,keyCertSign"
# shellcheck disable=SC2086
openssl req $ec -keyout server.key -out server.csr -subj "/CN=api.test"
touch index
echo 01 >serial
cat > ca.cnf <<'END'
[ca]
default_ca = test
[test]
database = index
new_certs_dir = .
serial = serial
default_md = sha256
policy = any
x509_extensions = server
[any]
commonName = supplied
[server]
subjectAltName = DNS:api.test
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
END
# From a day that no clock is before, so that the tests do not depend on when these were made.
openssl ca -batch -notext -config ca.cnf -cert authority.pem -keyfile authority.key -in server.csr \
    -out server.pem -startdate 20200101000000Z -enddate 21200101000000Z
cp authority.pem server.key server.pem "$here"

#!/usr/bin/env bash
# Installs the Debian package of `packaging/build.sh` in a clean root, which has the package's libraries and nothing else, and runs the main
# job there. Lists the RPM if `rpm` is there. Ends with 77 where a tool is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(git rev-parse --short=12 HEAD)
packaging/build.sh
deb=$(ls target/package/*.deb) rpm=$(ls target/package/*.rpm)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
dpkg-deb --extract "$deb" "$root"
for file in usr/bin/headtime usr/share/man/man1/headtime-serve.1.gz usr/share/bash-completion/completions/headtime \
    usr/lib/systemd/system/headtime.service usr/share/doc/headtime/examples/goals.toml; do
    [ -e "$root/$file" ] || { echo "$deb lacks $file" >&2; exit 1; }
done
ldd "$root/usr/bin/headtime" | grep -o '/[^ ]*' | while read -r library; do
    install -D "$library" "$root$library"
done
in_root() { unshare --map-root-user --root="$root" "$@"; }
in_root /usr/bin/headtime --version | grep -F "($commit)" || { echo "the package is of another commit than $commit" >&2; exit 1; }
in_root /usr/bin/headtime sim run >"$root/table.txt"
grep -q '^stream(deadline)' "$root/table.txt"
dpkg-deb --field "$deb" Depends | grep -q libc6
if command -v rpm >/dev/null; then
    rpm --query --list --package "$rpm" | grep -x /usr/bin/headtime
fi
echo "installed and run: $deb"

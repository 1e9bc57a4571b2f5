# shellcheck shell=bash
# What the scripts of this directory share: programs of others, from Debian's source packages, against Headtime. Sourced by bash scripts.
#
# Each script ends with 77 and a message if something cannot be had here. Sources and what is built of them are kept in PEERS_CACHE.
cache=${PEERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headtime-peers}
source "$(dirname "${BASH_SOURCE[0]}")/../live/lib.sh"
skipped=77
# What a registry does not give today is no failure.
unset REQUIRE_TOOLS
# What a release build has made, or else a debug build.
if [ -z "${HEADTIME:-}" ] && [ ! -x "$headtime" ]; then headtime=$target/debug/headtime; fi
[[ $headtime = /* ]] || headtime=$PWD/$headtime
export PATH=$PATH:/usr/sbin:/sbin

# debian_source PACKAGE MEMBER...: unpacks members of a Debian source package (patterns, as of tar) into $cache/PACKAGE, without the
# directory that they are in. The sources of packages are those of the machine's own apt configuration.
debian_source() {
    local package=$1 lists=$work/apt unpacked
    shift
    [ ! -e "$cache/$package/unpacked" ] || return 0
    need_tools apt-get tar xz
    mkdir -p "$lists/parts" "$lists/lists/partial" "$lists/archives" "$cache"
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -s "$file" ] || sed -n 's/^deb /deb-src /p' "$file" >>"$lists/parts/own.list"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [ ! -s "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$lists/parts/${file##*/}"
    done
    cat >"$lists/conf" <<CONF
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$lists/parts";
Dir::State::Lists "$lists/lists";
APT::Sandbox::User "root";
CONF
    (
        cd "$lists/archives"
        export APT_CONFIG=$lists/conf
        apt-get update && apt-get source --download-only "$package"
    ) >"$lists/log" 2>&1 || {
        tail -n 5 "$lists/log" | sed 's#[a-z]*://[^ ]*#..#g' >&2
        skip "Debian's source package of $package cannot be had"
    }
    unpacked=$cache/$package.$$
    mkdir -p "$unpacked"
    tar -C "$unpacked" --strip-components=1 --wildcards -xf "$(ls "$lists"/archives/*.orig.tar.*[!c])" "$@"
    touch "$unpacked/unpacked"
    rm -rf "${cache:?}/$package"
    mv "$unpacked" "$cache/$package"
}

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

# own_apt TYPE COMMAND...: an apt with lists of its own, of the packages (deb) or the sources of packages (deb-src) in the machine's own apt
# configuration. Files come into $work/TYPE/archives.
own_apt() {
    local type=$1 lists=$work/$1 file
    shift
    mkdir -p "$lists/parts" "$lists/lists/partial" "$lists/archives"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -s "$file" ] || sed -n "s/^deb /$type /p" "$file" >>"$lists/parts/own.list"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [ ! -s "$file" ] || sed "s/^Types:.*/Types: $type/" "$file" >"$lists/parts/${file##*/}"
    done
    cat >"$lists/conf" <<CONF
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$lists/parts";
Dir::State::Lists "$lists/lists";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Sandbox::User "root";
CONF
    (
        cd "$lists/archives"
        export APT_CONFIG=$lists/conf
        { [ -e "$lists/updated" ] || apt-get update >&2; } && touch "$lists/updated" && "$@"
    ) 2>>"$lists/log"
}

# not_had TYPE WHAT: skips with the last lines of that apt, without the names of hosts.
not_had() {
    tail -n 5 "$work/$1/log" | sed 's#[a-z]*://[^ ]*#..#g' >&2
    skip "$2 cannot be had"
}

# debian_source PACKAGE MEMBER...: unpacks members of a Debian source package (patterns, as of tar) into $cache/PACKAGE, without the
# directory that they are in.
debian_source() {
    local package=$1 unpacked
    shift
    [ ! -e "$cache/$package/unpacked" ] || return 0
    need_tools apt-get tar xz
    own_apt deb-src apt-get source --download-only "$package" >/dev/null || not_had deb-src "Debian's source package of $package"
    unpacked=$cache/$package.$$
    mkdir -p "$unpacked"
    tar -C "$unpacked" --strip-components=1 --wildcards -xf "$(ls "$work"/deb-src/archives/*.orig.tar.*[!c])" "$@"
    touch "$unpacked/unpacked"
    rm -rf "${cache:?}/$package"
    mv "$unpacked" "$cache/$package"
}

# debian_kernel MEMBER...: unpacks Debian's kernel with these files (patterns, as of tar) into $cache/kernel, for KERNEL of guest.sh.
debian_kernel() {
    local package unpacked=$cache/kernel.$$
    [ ! -e "$cache/kernel/unpacked" ] || return 0
    need_tools apt-get dpkg-deb depmod
    package=$(own_apt deb apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p')
    [ -n "$package" ] || not_had deb "Debian's kernel"
    own_apt deb apt-get download "$package" >/dev/null || not_had deb "Debian's kernel"
    mkdir -p "$unpacked"
    dpkg-deb --fsys-tarfile "$work"/deb/archives/"$package"_*.deb | tar -C "$unpacked" --wildcards -x './boot/vmlinuz-*' './lib/modules/*/modules.*' "$@"
    depmod -b "$unpacked" "${package#linux-image-}"
    touch "$unpacked/unpacked"
    rm -rf "${cache:?}/kernel"
    mv "$unpacked" "$cache/kernel"
}

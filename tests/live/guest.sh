# shellcheck shell=bash
# A virtual machine with Debian's kernel and files of a script's own, without KVM. Sourced after lib.sh.
#
# KERNEL is a directory with the kernel, in place of that of this machine. TIMEOUT (900) is how many seconds the machine may take.
export PATH=$PATH:/usr/sbin:/sbin
need qemu-system-x86_64 busybox cpio modprobe
initrd=$work/initrd
mkdir -p "$initrd"/{bin,proc,sys,dev,modules}
cp "$(command -v busybox)" "$initrd/bin/busybox"
ldd "$(command -v busybox)" >/dev/null 2>&1 && skip 'busybox is not linked statically (busybox-static)'

# guest_modules MODULE...: the kernel, in $image, and its modules in their order, each with what it needs.
guest_modules() {
    local kernel=${KERNEL:-/} module number=100 version
    image=$(find "$kernel/boot" -maxdepth 1 -name 'vmlinuz-*' 2>/dev/null | sort -V | tail -n 1 || true)
    [ -n "$image" ] || skip "there is no kernel in $kernel/boot; KERNEL names another directory"
    version=${image##*/vmlinuz-}
    for module in "$@"; do
        modprobe --dirname "$kernel" --set-version "$version" --show-depends "$module" >>"$work/needed" 2>/dev/null ||
            skip "the kernel in $kernel has no module $module"
    done
    awk '$1 == "insmod" && !had[$2]++ { print $2 }' "$work/needed" >"$work/modules"
    while read -r module; do
        number=$((number + 1))
        cp "$module" "$initrd/modules/$number-${module##*/}"
    done <"$work/modules"
    case $(ls "$initrd/modules") in *.ko.*) skip 'the modules are compressed; this works with those of Debian 12' ;; esac
}

# with_libraries FILE...: and whatever they are linked with.
with_libraries() {
    local file
    for file in "$@"; do
        cp "$(readlink -f "$file")" "$initrd/bin/${file##*/}"
        ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$initrd${library%/*}"
            cp -L -n "$library" "$initrd$library"
        done
    done
}

# guest_init: what the guest does, from standard input. It says `ok: ..` or `FAILED: ..` of each thing, in a directory of its own.
guest_init() {
    cat - >"$initrd/script"
    cat >"$initrd/init" <<'GUEST'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /tmp
cd /tmp
echo 3 >/proc/sys/kernel/printk

good() { echo "ok: $*"; }
bad() { echo "FAILED: $*"; }
# check WHAT COMMAND...
check() {
    local what=$1
    shift
    if "$@"; then good "$what"; else bad "$what: $(tail -n 3 said 2>/dev/null)"; fi
}
. /script
echo 'the guest is done'
poweroff -f
GUEST
    chmod +x "$initrd/init"
}

# guest_run MEMORY QEMU_OPTION...: the machine, with so many MB, until it is done.
guest_run() {
    local memory=$1
    shift
    (cd "$initrd" && find . | cpio --quiet -o -H newc) >"$work/initrd.img"
    timeout "${TIMEOUT:-900}" qemu-system-x86_64 -accel tcg -m "$memory" -smp 1 -display none -serial stdio -monitor none -no-reboot \
        -kernel "$image" -initrd "$work/initrd.img" -append 'console=ttyS0 quiet edd=off panic=-1' "$@" \
        </dev/null >"$work/guest.out" 2>&1 || fail "the machine did not end: $(tail -n 20 "$work/guest.out")"
    tr -d '\r' <"$work/guest.out" | grep -aE '^(ok|FAILED|   |the guest)' || true
    grep -qa 'the guest is done' "$work/guest.out" || fail "the machine ended early: $(tail -n 20 "$work/guest.out")"
    if grep -qa '^FAILED' "$work/guest.out"; then fail 'see above'; fi
}

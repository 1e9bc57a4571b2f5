#!/usr/bin/env bash
# The switches of real disks, as the kernel has them: a probe turns look-ahead and the write cache of a disk of scsi_debug, and they are back after its end,
# after a signal, and at the next start after a kill; and of what has no such switch that is said. In a virtual machine, without KVM, so that it needs
# no disk and no privilege. Takes one minute, or eight beside others. KERNEL is a directory with Debian's kernel, in place of that of this machine:
#   apt-get download "$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p')" && dpkg -x linux-image-*.deb DIR && depmod -b DIR VERSION
source "$(dirname "$0")/lib.sh"
skipped=77
source "$root/tests/live/guest.sh"
need setpriv sdparm perl
# scsi_debug comes last: its disk is asked for when the others are there.
guest_modules ahci virtio_pci virtio_blk virtio_scsi nvme loop sd_mod scsi_debug

# What scsi_debug lets be changed of its caching page is the write cache alone, though it takes all: the mask that it shows, two stores of
# eight bytes, is given the bit for reading ahead. It is not signed then. The first disk is made with the module as it is.
perl -0777 -pe '
    $n = s/(\x48\xc7\x44\x24\x02\x04\0\0\0.{0,9}?\x48\xc7\x44\x24\x0a\0\0)\0\0/$1\x20\0/sg;
    s/~Module signature appended~\n\z//;
    END { exit($n == 1 ? 0 : 1) }' "$initrd"/modules/*-scsi_debug.ko >"$initrd/scsi_debug-ahead.ko" || skip 'scsi_debug of this kernel is built otherwise'

with_libraries "$headtime" "$(command -v setpriv)" "$(command -v sdparm)"

# What is known of a simulated drive as large as the disk of scsi_debug, as far as writes and as far as the buffer: a disk in memory does not turn,
# so that nothing would be asked of it that needs a switch. Here it turns once a second and has all known sectors at one angle: read at once, as there, they
# come when they should.
sed -e 's/^capacity_sectors = .*/capacity_sectors = 83968/' -e 's/^spares = .*/spares = 16/' "$root/crates/cli/tests/data/little.toml" >"$work/little.toml"
for ((try = 0; try < 20; try++)); do
    "$headtime" drive probe --emulate "$work/little.toml" --write-scratch 10MiB-30MiB --state "$work/state" --time 10s >/dev/null 2>&1 || true
    stage=$(sed -n 's/^stage = "\(.*\)"/\1/p' "$work/state")
    [ -e "$initrd/$stage" ] || perl -pe '
        $table = $1 if /^\[+([^\]]*)/;
        if ($table =~ /^extraction\.spindle/) { s/^(angle|hit_below) = .*/$1 = 0.0/; s/^turn = .*/turn = 999000000/ }' "$work/state" >"$initrd/$stage"
    if [ "$stage" = electronics ]; then break; fi
done
for stage in writes electronics; do
    [ -e "$initrd/$stage" ] || fail "the simulated probe was never before $stage: $(ls "$initrd")"
done

guest_init <<'GUEST'
said() { grep -qF "$1" said; }

# rehash FILE: with FNV-1a of what is below the first line, and of a zero, in that line, as a state has it.
rehash() {
    local hash=-3750763034362895579 byte
    sed 1d "$1" >text
    for byte in $(od -An -v -tu1 text) 0; do
        hash=$(((hash ^ byte) * 1099511628211))
    done
    {
        sed -n '1s/ [^ ]*$//p' "$1" | tr '\n' ' '
        printf '%016x\n' "$hash"
        cat text
    } >hashed
    mv hashed "$1"
}

# state_of STAGE DISK: the state of the simulated drive as one of the disk, in kept-STAGE.
state_of() {
    local identity
    cp "/$1" state
    rehash state
    headtime drive probe "$2" --state state $scratch --time 10s >/dev/null 2>said
    identity=$(sed -n 's/.*; this is \(.*\)\. Begin with another.*/\1/p' said)
    sed -i "s|^disk = .*|disk = \"$identity\"|" state
    rehash state
    mv state "kept-$1"
}

# A bit of the caching page, by a program that is not ours.
bit() { sdparm --page=ca --get="$1" "$disk" 2>/dev/null | awk -v bit="$1" '$1 == bit { print $2 }'; }
both() { echo "$(bit DRA) $(bit WCE)"; }
set_bits() {
    sdparm --page=ca --set "DRA=${1% *},WCE=${1#* }" "$disk" >/dev/null 2>&1
    # The kernel has its own idea of the write cache.
    echo 1 >"/sys/block/${disk#/dev/}/device/rescan"
}

# recorded SWITCH: whether it is to be put back. Without a process of its own: some are turned for ten milliseconds.
recorded() {
    local line
    [ -e state.switches ] || return 1
    while read -r line; do
        case $line in "$1"*) return 0 ;; esac
    done <state.switches
    return 1
}

# turned STAGE SIGNAL SWITCH WAIT: a probe from there is sent the signal so many microseconds after the switch was recorded. Its code is in
# $code, what was seen then in $seen.
turned() {
    local pid
    rm -f state.switches
    cp "kept-$1" state
    headtime drive probe "$disk" --state state $scratch >page 2>said &
    pid=$!
    while ! recorded "$3" 2>/dev/null && kill -0 $pid 2>/dev/null; do :; done
    # What is recorded is turned a moment later.
    [ "$4" = 0 ] || usleep "$4"
    kill "-$2" $pid 2>/dev/null
    wait $pid 2>/dev/null
    code=$?
    seen=$(both)
}

# ends_well NAME STAGE SWITCH BITS TURNED: by kills, a signal and its own end, with the disk's bits so (DRA, WCE), which are TURNED meanwhile.
ends_well() {
    local name=$1 stage=$2 switch=$3 before=$4 meanwhile=$5 try
    set_bits "$before"
    [ "$(both)" = "$before" ] || bad "$name: sdparm has not set $before: $(both)"
    for try in $(seq 40); do
        turned "$stage" KILL "$switch" $((try % 8 * 1500))
        # Or else it was killed before or after.
        [ "$seen" != "$meanwhile" ] || [ ! -e state.switches ] || break
        set_bits "$before"
    done
    check "$name: killed, it is left $meanwhile" [ "$seen" = "$meanwhile" ]
    check "$name: that is recorded" [ -e state.switches ]
    cp state killed
    cp state.switches killed.switches
    headtime drive probe "$disk" --state state $scratch >/dev/null 2>said &
    for try in $(seq 400); do
        grep -q 'again, which a probe that was killed had turned' said && break
        usleep 10000
    done
    kill -INT $! 2>/dev/null
    wait $!
    check "$name: the next start says so" said 'again, which a probe that was killed had turned'
    check "$name: put back to $before" [ "$(both)" = "$before" ]
    check "$name: nothing is recorded any more" [ ! -e state.switches ]
    turned "$stage" INT "$switch" 0
    check "$name: told to end, with code 5" [ "$code" = 5 ]
    check "$name: then as before" [ "$(both)" = "$before" ]
    check "$name: and no record" [ ! -e state.switches ]
    cp "kept-$stage" state
    headtime drive probe "$disk" --state state $scratch --time 20s >page 2>said
    echo "   ended with $?"
    check "$name: ended, as before" [ "$(both)" = "$before" ]
    check "$name: and no record" [ ! -e state.switches ]
    grep 'can be switched' page | sed 's/^/   /'
}

# kind VENDOR MODEL: the last disk of these.
kind() {
    local found=
    for device in /sys/block/sd*; do
        if grep -q "^$1" "$device/device/vendor" && grep -q "^$2" "$device/device/model"; then found=/dev/${device##*/}; fi
    done
    echo "$found"
}
# notes NAME DISK WORDS [COMMAND...]: what a probe says of look-ahead there.
notes() {
    local name=$1 on=$2 words=$3
    shift 3
    rm -f noted noted.switches
    "$@" headtime drive probe "$on" --state noted --time 10s >/dev/null 2>said &
    for try in $(seq 500); do
        grep -q 'look-ahead' said && break
        kill -0 $! 2>/dev/null || break
        usleep 10000
    done
    kill -INT $! 2>/dev/null
    wait $!
    check "$name: $words" said "look-ahead stays as it is: $words"
}
unprivileged='/bin/setpriv --bounding-set=-sys_rawio --inh-caps=-sys_rawio'

for module in /modules/*; do
    case $module in
    *scsi_debug.ko) insmod "$module" dev_size_mb=41 delay=0 ;;
    # Some are for processors that are not here.
    *) insmod "$module" 2>/dev/null ;;
    esac
done
sleep 2
scratch=
disk=$(kind Linux scsi_debug)
notes 'scsi_debug' "$disk" 'there is no such switch: the disk says that this bit of its caching page (DRA) cannot be changed'
rmmod scsi_debug
insmod /scsi_debug-ahead.ko dev_size_mb=41 delay=0
sleep 2

disk=$(kind Linux scsi_debug)
[ -n "$disk" ] || {
    bad 'there is no disk of scsi_debug'
    poweroff -f
}
notes 'no CAP_SYS_RAWIO, SCSI' "$disk" 'commands to the disk itself are not permitted' $unprivileged
scratch='--write-scratch 10MiB-30MiB'
state_of electronics "$disk"
state_of writes "$disk"
ends_well 'look-ahead' electronics look_ahead '1 1' '0 1'
ends_well 'write cache' writes write_cache '0 1' '0 0'
ends_well 'both' electronics write_cache '1 0' '0 1'

# What is to be put back, and cannot.
cp killed state
cp killed.switches state.switches
set_bits '0 1'
sed 's/^/   /' state.switches
$unprivileged headtime drive probe "$disk" --state state $scratch --time 10s >/dev/null 2>said
echo "   $(tail -n 1 said)"
check 'not put back without privilege: that is said' said 'not permitted'
check 'not put back without privilege: the record stays, of look-ahead alone' grep -q look_ahead state.switches
check 'not put back without privilege: the write cache is back' [ "$(both)" = '0 0' ]
headtime drive probe "$disk" --state state $scratch --time 10s >/dev/null 2>said
check 'with it: all is back' [ "$(both)" = '1 0' ]

disk=$(kind QEMU 'QEMU HARDDISK')
notes 'SCSI disk with a mask' "$disk" 'there is no such switch: the disk says that this bit of its caching page (DRA) cannot be changed'
disk=$(kind ATA 'QEMU HARDDISK')
notes 'ATA disk' "$disk" 'there is no such switch: the disk says that it has none'
notes 'no CAP_SYS_RAWIO, ATA' "$disk" 'commands to the disk itself are not permitted' $unprivileged
dd if=/dev/zero of=/loop.img bs=1M count=16 2>/dev/null
losetup /dev/loop0 /loop.img
for disk in /dev/vda /dev/nvme0n1 /dev/loop0; do
    notes "$disk" "$disk" 'there is no such switch: only ATA, SATA, SCSI and SAS disks have one'
done
GUEST

for name in scsi ata virtio nvme; do truncate --size=64M "$work/$name.img"; done
drive() { echo "file=$work/$1.img,if=none,format=raw,id=$1"; }
guest_run 1024 -nic none -drive "$(drive ata)" -device ahci,id=ahci -device ide-hd,drive=ata,bus=ahci.0 \
    -device virtio-scsi-pci,id=scsi -drive "$(drive scsi)" -device scsi-hd,drive=scsi,bus=scsi.0 \
    -drive "$(drive virtio)" -device virtio-blk-pci,drive=virtio \
    -drive "$(drive nvme)" -device nvme,drive=nvme,serial=1
echo 'switches-vm: all switches are back'

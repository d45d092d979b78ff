#!/bin/sh -e
# Takes a run over boots of a PC in QEMU to its end: boots.sh DIR PROGRAM FIRMWARE [CUT...]. DIR has the disk that
# boots_disk.sh makes; FIRMWARE is bios, uefi, or kexec for a PC without a boot loader. The power of the PC is cut at
# each CUT, once in each boot of the run: at a place of the program (`record-kept`), or so many seconds (`45`) after
# the last boot of the run was measured; not at `-`. DIR/run is the run then, DIR/boot-before and DIR/boot-after are
# what the disk boots by; DIR/console is all output.
cd "$1"; program=$2 firmware=$3; shift 3; cuts=$*
at=$((67584 * 512)) releases=$(ls root/boot | sed -n 's/^vmlinuz-//p' | sort)
boot_files() { for file in grub.cfg custom.cfg grubenv; do debugfs -R "cat /boot/grub/$file" "$1?offset=$at" 2>&1 |
    sed '1d;s/#*$//;/^next_entry=$/d'; done
    debugfs -R 'ls /etc/systemd/system/multi-user.target.wants' "$1?offset=$at" 2>&1 | grep -o punctual || true; }
rm -rf given run pc.img console; mkdir given
boot_files disk.img >boot-before
cp --sparse=always disk.img pc.img
cp "$program" given/punctual; strip given/punctual
kernels=$(printf '"installed:%s", ' $releases)
cat >given/plan.toml <<END
repetitions = ${BLOCKS:-4}
duration = "1s"
warm_up = "100ms"
[axes]
kernel = [${kernels%, }]
load = ["none", "cpu"]
policy = ["fifo:80"]
END
cat >given/start <<'END'
# Runs at each start of the PC.
cd /run/given; unit=punctual-resume.service
# Programs cannot be started from /run.
cmp -s punctual /usr/bin/punctual || install punctual /usr/bin/punctual
[ -e kexec ] && mv /boot/grub/grub.cfg /boot/grub/away || true
mkdir -p /run/systemd/system/$unit.d
printf '[Service]\nExecStartPre=\nEnvironment=PUNCTUAL_FAIL_AT=stop:%s PUNCTUAL_FAIL_LOG=/dev/ttyS0\n' "$(cat cut)" \
    >/run/systemd/system/$unit.d/cut.conf
systemctl daemon-reload
cat >watch <<'END2'
exec >/dev/ttyS0 2>&1; unit=/etc/systemd/system/multi-user.target.wants/punctual-resume.service
export PUNCTUAL_FAIL_AT=stop:$(cat cut) PUNCTUAL_FAIL_LOG=/dev/ttyS0
echo "started: $(uname -r) $(cat /proc/cmdline)"
[ -e /root/run/run.jsonl ] && plan=--resume || plan=plan.toml
[ -e $unit ] || punctual run $plan --reboot --yes --wait --out /root/run
while [ -e $unit ] || systemctl is-active -q punctual-resume; do sleep 2; done
echo campaign: ended
systemctl poweroff
END2
systemd-run --unit=watch --working-directory=/run/given --setenv=HOME=/root /bin/sh watch
END
rt=$(echo "$releases" | grep -- -rt)
case $firmware in
    bios) set -- ;;
    uefi) cp /usr/share/OVMF/OVMF_VARS_4M.fd vars
        set -- -drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd \
            -drive if=pflash,format=raw,file=vars ;;
    kexec) touch given/kexec
        set -- -kernel "root/boot/vmlinuz-$rt" -initrd "root/boot/initrd.img-$rt" \
            -append 'root=LABEL=pc quiet console=ttyS0' ;;
esac
give() { # the next CUT, read when the PC starts its system the next time
    cut=$1; echo "${cut:-none}" >given/cut; tar -C given -cf given.new .
    dd if=given.new of=given.tar bs=1M conv=notrunc status=none; armed=$(date +%s)
}
next() { first=${cuts%% *}; give "${first#-}"; cuts=${cuts#"$first"}; cuts=${cuts# }; }
start() {
    n=$((n + 1)); [ $n -le 80 ] || { echo 'a boot loop'; exit 1; }
    echo "== start $n" >>console; : >serial
    [ $n -eq 1 ] || set -- "$@" -rtc base=2020-01-01 # A battery that is empty.
    setpriv --pdeathsig KILL qemu-system-x86_64 -M q35 -nodefaults -accel tcg -cpu max -m 1024 \
        -display none -serial file:serial -device ahci,id=sata -drive if=none,id=disk,format=raw,file=pc.img \
        -device ide-hd,bus=sata.0,drive=disk,bootindex=1 -drive if=none,id=given,format=raw,file=given.tar \
        -device ide-hd,bus=sata.1,drive=given,serial=given "$@" &
    qemu=$!
}
truncate -s 64M given.tar; next; start "$@"
while kill -0 $qemu 2>/dev/null; do
    sleep 1
    measured=$(grep -ao '[0-9]* of [0-9]* boots measured' serial | tail -1)
    if [ -n "$measured" ] && [ "$measured" != "$last" ]; then
        last=$measured; [ -n "$cut" ] || next
    fi
    case $cut in
        '') continue ;;
        *[!0-9]*) grep -aq "stop:$cut " serial || continue ;;
        *) [ $(($(date +%s) - armed)) -ge "$cut" ] || continue ;;
    esac
    kill -9 $qemu; wait $qemu || true
    echo "cut: $cut after $last" | tee -a serial; cat serial >>console
    give ''; start "$@"
done
wait $qemu; cat serial >>console; grep -aq 'campaign: ended' serial
echo "starts of the PC: $n; cuts left: ${cut:-none}${cuts:+ $cuts}"
debugfs -R "rdump /root/run ." "pc.img?offset=$at" 2>/dev/null
boot_files pc.img >boot-after

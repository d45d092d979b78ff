#!/bin/sh -e
# Makes the disk of a PC with Debian 12, two kernels and GRUB for BIOS and UEFI: boots_disk.sh DIR. It is DIR/disk.img:
# a FAT partition at 1 MiB for UEFI, the root file system at 33 MiB. Needs root and the packages debootstrap, fdisk,
# mtools, grub-pc-bin and grub-efi-amd64-bin.
cd "$1"
rm -rf root disk.img
debootstrap --variant=minbase \
    --include=systemd-sysv,udev,dbus,kmod,grub2-common,initramfs-tools,zstd bookworm root >debootstrap.log
printf 'MODULES=list\nCOMPRESS=zstd\n' >root/etc/initramfs-tools/conf.d/small
printf '%s\n' ahci sd_mod ext4 >>root/etc/initramfs-tools/modules
cp /etc/resolv.conf root/etc/resolv.conf
chroot root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    linux-image-amd64 linux-image-rt-amd64 >>debootstrap.log
rm -rf root/var/cache/apt/archives root/var/lib/apt/lists root/usr/share/doc root/usr/share/locale
echo pc >root/etc/hostname
echo 'LABEL=pc / ext4 errors=remount-ro 0 1' >root/etc/fstab
printf '%s\n' GRUB_DEFAULT=0 GRUB_TIMEOUT=1 'GRUB_CMDLINE_LINUX="quiet console=ttyS0"' GRUB_TERMINAL=serial \
    >root/etc/default/grub
# As `update-grub` has to see the disk of the PC, it runs at its first start.
cat >root/sbin/first <<END
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -o remount,rw /
udevd=/lib/systemd/systemd-udevd; \$udevd --daemon; udevadm trigger; udevadm settle
update-grub && grub-editenv /boot/grub/grubenv create && echo first: done
sync; mount -o remount,ro /; echo o >/proc/sysrq-trigger; sleep 60
END
chmod 755 root/sbin/first
# What a test gives to the PC: an archive on a second disk, unpacked and run at each start.
cat >root/etc/systemd/system/given.service <<END
[Unit]
After=local-fs.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'udevadm settle; mkdir -p /run/given; cd /run/given; tar -xf /dev/disk/by-id/*_given; sh start'
[Install]
WantedBy=multi-user.target
END
chroot root systemctl enable given.service 2>>debootstrap.log
mkdir -p root/boot/grub
cp -r /usr/lib/grub/i386-pc /usr/lib/grub/x86_64-efi root/boot/grub

truncate -s 2600M disk.img
printf '2048,65536,0xef\n67584,,L,*\n' | sfdisk -q disk.img
for target in i386-pc x86_64-efi; do
    [ $target = i386-pc ] && firmware=biosdisk || firmware=efi_gop
    grub-mkimage -O $target -p "(hd0,msdos2)/boot/grub" -o $target.img $firmware part_msdos ext2 normal
done
mformat -i disk.img@@1M -T 65536 -h 64 -s 32 ::
mmd -i disk.img@@1M ::/EFI ::/EFI/BOOT
mcopy -i disk.img@@1M x86_64-efi.img ::/EFI/BOOT/BOOTX64.EFI
# The code of the first sector loads the rest from sector 1 on; it takes the number of the drive as it is (boot.S).
dd if=/usr/lib/grub/i386-pc/boot.img of=disk.img bs=440 count=1 conv=notrunc status=none
printf '\220\220' | dd of=disk.img bs=1 seek=102 conv=notrunc status=none
dd if=i386-pc.img of=disk.img bs=512 seek=1 conv=notrunc status=none
mkfs.ext4 -q -F -L pc -E offset=$((67584 * 512)) -d root disk.img $((2600 * 1024 - 33 * 1024))
kernel=$(ls root/boot/vmlinuz-*-rt-amd64)
timeout 600 qemu-system-x86_64 -M q35 -nodefaults -accel tcg -cpu max -m 1024 -display none -serial stdio -no-reboot \
    -drive if=none,id=disk,format=raw,file=disk.img -device ahci,id=sata -device ide-hd,bus=sata.0,drive=disk \
    -kernel "$kernel" -initrd "$(echo "$kernel" | sed s/vmlinuz/initrd.img/)" \
    -append 'console=ttyS0 root=LABEL=pc ro quiet init=/sbin/first' >first.log 2>&1
grep -q 'first: done' first.log

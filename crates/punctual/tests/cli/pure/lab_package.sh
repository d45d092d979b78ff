# A package, $1, of the kernel $2, changed by the script $3.
rm -rf tree; mkdir -p tree/DEBIAN tree/boot
printf '%s\n' 'Package: linux-image' 'Version: 1' 'Architecture: amd64' 'Maintainer: a <a@b.c>' 'Description: x' > tree/DEBIAN/control
cp $2 tree/boot/vmlinuz-6.1.0-9-amd64
printf '%s\n' '# Linux/x86 6.1.0 Kernel Configuration' CONFIG_PREEMPT_DYNAMIC=y > tree/boot/config-6.1.0-9-amd64
(cd tree; eval "$3")
dpkg-deb --build tree $1 > /dev/null

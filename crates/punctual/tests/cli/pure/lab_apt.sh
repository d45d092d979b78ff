# A package manager that knows the package $1, with the checksum $2 if that is not its own.
sum=${2:-$(sha256sum < $1 | cut -d ' ' -f 1)}
name=linux-image-6.1.0-9-amd64
./program apt-cache "case \$1 in pkgnames) echo $name;;
*) printf '%s\n' 'Package: $name' 'Version: 6.1.4-1' 'Size: $(wc -c < $1)' 'SHA256: $sum';; esac"
./program apt-get "cp $PWD/$1 ./${name}_6.1.4-1_amd64.deb"

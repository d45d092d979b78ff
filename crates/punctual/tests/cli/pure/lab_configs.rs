//! Build configurations of kernels: like for like or not, and files that are damaged or never end.

use crate::program::{is_installed, skip_unless};
use crate::pure::lab_kernels::{system, vmlinux};
use crate::session::play;

/// Prints a configuration with these options, and with two that all have.
const OPTIONS: &str = "#!/bin/sh
printf '%s\\n' '#' '# Automatically generated file; DO NOT EDIT.' '# Linux/x86 6.12.117 Kernel Configuration' '#'
printf '%s\\n' CONFIG_HZ=250 CONFIG_EXT4_FS=y \"$@\"
";

#[test]
fn configurations_are_compared_or_refused() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    play(|scratch, _| {
        system(scratch);
        scratch.executable("options", OPTIONS);
        // A vmlinux with this data where `CONFIG_IKCONFIG` puts the configuration.
        scratch.file("begin", [&vmlinux(62, true, 0), b"IKCFG_ST".as_slice()].concat());
        scratch.executable("embed", "#!/bin/sh\ncat begin $1; printf IKCFG_ED\n");
        // A bzImage with this payload, whose length is at 0x24c.
        let mut kernel = vec![0; 3 * 512];
        kernel[0x1f1] = 2;
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        (kernel[0x206], kernel[0x207], kernel[0x236]) = (0x0f, 0x02, 1);
        let length =
            r#"n=$(wc -c <$1); for shift in 0 8 16 24; do printf "\\$(printf %o $((n >> shift & 255)))"; done"#;
        scratch.file("head", &kernel[..0x24c]);
        scratch.file("rest", &kernel[0x250..]);
        scratch.executable("bzimage", format!("#!/bin/sh\ncat head; {length}; cat rest $1\n"));
    });
}

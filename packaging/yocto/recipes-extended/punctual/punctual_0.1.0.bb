SUMMARY = "Laboratory for Linux real-time performance"
DESCRIPTION = "Measures wake-up latency under load, explains each late wake-up, and says how sure the numbers are."
SECTION = "tests"
LICENSE = "Apache-2.0 OR MIT"
LIC_FILES_CHKSUM = "file://LICENSE-MIT;md5=3b9dc3da261b32fd0c309789c03fc20b \
                    file://LICENSE-APACHE;md5=3b83ef96387f14655fc854ddc3c6bd57"

# The archive of `make dist` or `scripts/dist source`, from the checkout that this layer is in or beside this recipe.
FILESEXTRAPATHS:prepend := "${THISDIR}/../../../../target/packages:"
SRC_URI = "file://${BP}-source.tar.gz"
require ${BPN}-crates.inc

inherit cargo cargo-update-recipe-crates systemd useradd

# The profile of packages: optimized for size, except what measures.
CARGO_PROFILE = "dist"
# Without stores, PostgreSQL, sample files and published studies, which are for the machines that keep the runs.
CARGO_BUILD_FLAGS += "--no-default-features"

SYSTEMD_SERVICE:${PN} = "punctual@.service punctual-monitor.service"
SYSTEMD_AUTO_ENABLE = "disable"
USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "--system realtime"

do_install:append() {
    install -d ${D}${datadir}/punctual/plans
    install -m 0644 ${S}/plans/*.toml ${D}${datadir}/punctual/plans
    install -D -m 0644 ${S}/packaging/limits.conf ${D}${sysconfdir}/security/limits.d/punctual.conf
    install -D -m 0644 ${S}/packaging/udev.rules ${D}${nonarch_base_libdir}/udev/rules.d/60-punctual.rules
    install -D -m 0644 ${S}/packaging/punctual@.service ${D}${systemd_system_unitdir}/punctual@.service
    install -m 0644 ${S}/packaging/punctual-monitor.service ${D}${systemd_system_unitdir}/
}

FILES:${PN} += "${nonarch_base_libdir}/udev/rules.d ${systemd_system_unitdir}"
CONFFILES:${PN} = "${sysconfdir}/security/limits.d/punctual.conf"

################################################################################
#
# punctual
#
################################################################################

PUNCTUAL_VERSION = 0.1.0
# The archive of `make dist` or `scripts/dist source`. Its hash is not listed
# because the archive contains this file.
PUNCTUAL_SOURCE = punctual-$(PUNCTUAL_VERSION)-source.tar.gz
PUNCTUAL_SITE = $(BR2_EXTERNAL_PUNCTUAL_PATH)/../../target/packages
PUNCTUAL_SITE_METHOD = file
PUNCTUAL_SUBDIR = crates/punctual
# Without stores, PostgreSQL, sample files and published studies, which are for
# the machines that keep the runs.
PUNCTUAL_CARGO_BUILD_OPTS = --no-default-features
PUNCTUAL_CARGO_INSTALL_OPTS = --no-default-features
PUNCTUAL_LICENSE = Apache-2.0 or MIT
PUNCTUAL_LICENSE_FILES = LICENSE-APACHE LICENSE-MIT
BR_NO_CHECK_HASH_FOR += $(PUNCTUAL_SOURCE)

define PUNCTUAL_INSTALL_FILES
	mkdir -p $(TARGET_DIR)/usr/share/punctual/plans
	$(INSTALL) -m 0644 $(@D)/plans/*.toml $(TARGET_DIR)/usr/share/punctual/plans
	$(INSTALL) -D -m 0644 $(@D)/packaging/limits.conf \
		$(TARGET_DIR)/etc/security/limits.d/punctual.conf
	$(INSTALL) -D -m 0644 $(@D)/packaging/udev.rules \
		$(TARGET_DIR)/usr/lib/udev/rules.d/60-punctual.rules
endef
PUNCTUAL_POST_INSTALL_TARGET_HOOKS += PUNCTUAL_INSTALL_FILES

define PUNCTUAL_INSTALL_INIT_SYSTEMD
	$(INSTALL) -D -m 0644 $(@D)/packaging/punctual@.service \
		$(TARGET_DIR)/usr/lib/systemd/system/punctual@.service
	$(INSTALL) -D -m 0644 $(@D)/packaging/punctual-monitor.service \
		$(TARGET_DIR)/usr/lib/systemd/system/punctual-monitor.service
endef

define PUNCTUAL_USERS
	- - realtime -1 - - - - -
endef

$(eval $(cargo-package))

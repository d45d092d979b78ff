//! Settings of network devices by ethtool's ioctl (linux/ethtool.h).

use std::ffi::CStr;
use std::io;

/// The ioctl, the same on every architecture (linux/sockios.h).
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Words of the longest request, `struct ethtool_coalesce`.
const WORDS: usize = 23;

/// How long a device holds back the interrupt of a received packet, us, and whether it adapts that to the traffic.
/// Errors: where the device or its driver does not support it.
pub fn coalescing(name: &CStr) -> io::Result<(u32, bool)> {
    const ETHTOOL_GCOALESCE: u32 = 0x0e;
    let [_, rx_us, _, _, _, _, _, _, _, _, is_adaptive, ..] = asked(name, ETHTOOL_GCOALESCE)?;
    Ok((rx_us, is_adaptive != 0))
}

/// Whether a device sends its link to sleep between packets (IEEE 802.3az). Errors: as [`coalescing`].
pub fn energy_efficient(name: &CStr) -> io::Result<bool> {
    const ETHTOOL_GEEE: u32 = 0x44;
    let [_, _, _, _, _, is_enabled, ..] = asked(name, ETHTOOL_GEEE)?;
    Ok(is_enabled != 0)
}

fn asked(name: &CStr, command: u32) -> io::Result<[u32; WORDS]> {
    let mut words = [0; WORDS];
    words[0] = command;
    let place = words.as_mut_ptr().cast();
    // The kernel writes a structure of at most `WORDS` words to `place`, which outlives the call.
    crate::boot::configure(name, SIOCETHTOOL, |request| request.ifr_ifru.ifru_data = place)?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_has_no_settings() {
        for result in [coalescing(c"none-such").map(drop), energy_efficient(c"none-such").map(drop)] {
            assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::ENODEV));
        }
        // The loopback device has neither.
        assert!(coalescing(c"lo").is_err() && energy_efficient(c"lo").is_err());
    }
}

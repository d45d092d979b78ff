//! Keeping CPUs out of deep idle states while measuring.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

/// A request held in `/dev/cpu_dma_latency`: no idle state with a longer exit latency. The kernel drops the request
/// when the file is closed, so nothing needs to be put back (Documentation/power/pm_qos_interface.rst).
#[derive(Debug)]
pub struct DmaLatency {
    _file: File,
}

const PATH: &str = "/dev/cpu_dma_latency";

impl DmaLatency {
    /// Requests `us` until dropped; returns the value in force with it. Errors: one line with the file, the value, the
    /// reason and advice.
    pub fn hold(us: u32) -> Result<(DmaLatency, u32), String> {
        let explain = |err: io::Error| {
            format!("cannot hold {us} us in {PATH}: {err}; run as root, or measure with --cpu-dma-latency leave")
        };
        let mut file = OpenOptions::new().read(true).write(true).open(PATH).map_err(explain)?;
        // Four bytes are the value itself; any other length would be read as hexadecimal text.
        file.write_all(&us.to_ne_bytes()).map_err(explain)?;
        let mut found = [0; 4];
        file.read_exact(&mut found).map_err(explain)?;
        let found = u32::from_ne_bytes(found);
        if found > us {
            return Err(format!(
                "cannot hold {us} us in {PATH}: it reads {found} us; measure with --cpu-dma-latency leave"
            ));
        }
        Ok((DmaLatency { _file: file }, found))
    }

    /// Whether this user can hold a request.
    pub fn is_permitted() -> bool {
        OpenOptions::new().write(true).open(PATH).is_ok()
    }
}

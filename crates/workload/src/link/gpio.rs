//! Lines of GPIO chips: lookup and request.

use punctual_model::{Link, Pins};
use punctual_rt::GpioLines;
use std::fs::File;
use std::io;
use std::path::Path;

/// Requests both lines: the first raises interrupts, the second is set. Errors: one line of text: the unavailable
/// resource, and the reason.
pub(super) fn open(link: Link, pins: &Pins) -> Result<GpioLines, String> {
    let Pins { input, output, .. } = *pins;
    let name = pins.chip.as_str();
    let path = Path::new("/dev").join(name);
    let chip = File::options().read(true).write(true).open(&path);
    let chip = chip.map_err(|err| super::unusable(link, &err, "run as root, or join the group that owns it (gpio)"))?;
    let count =
        punctual_sys::gpio::lines_of(&chip).map_err(|_| format!("{link}: {} is not a GPIO chip", path.display()))?;
    for line in [input, output] {
        if line >= count {
            let last = count.saturating_sub(1);
            return Err(format!("{link}: invalid line {line}: {name} has lines 0 to {last}"));
        }
        let user = punctual_sys::gpio::user_of(&chip, line);
        let user = user.map_err(|err| {
            format!("{link}: cannot read the user of line {line}: {err}; Linux 5.10 or newer is required")
        })?;
        if let Some(user) = user {
            let user = if user.is_empty() { "the kernel".to_owned() } else { format!("`{user}`") };
            return Err(format!(
                "{link}: line {line} is used by {user}; free it, or name another (gpioinfo lists them)"
            ));
        }
    }
    let lines = punctual_sys::gpio::request(&chip, input, output);
    lines.map(GpioLines::new).map_err(|err| refused(link, (input, output), &err))
}

/// The error for lines that exist and are free, but which the kernel refuses.
fn refused(link: Link, (input, output): (u32, u32), err: &io::Error) -> String {
    match err.raw_os_error() {
        Some(libc::EBUSY) => format!("{link}: another program has just requested one of the lines"),
        _ => format!(
            "{link}: cannot request line {input} as an input with an interrupt and line {output} as an output: {err}"
        ),
    }
}

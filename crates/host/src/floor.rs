//! The floor of this machine, kept beside the journals of settings until the next boot.

use crate::{HostFs, file};
use punctual_model::Floor;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

const PATH: &str = "run/punctual/floor.json";
/// Most bytes of the file: one floor has some 300.
const MOST_BYTES: usize = 4096;

/// Keeps the floor until the next boot. Errors: one line, when it cannot be written.
pub fn keep_floor(fs: &HostFs, floor: &Floor) -> Result<(), String> {
    let path = fs.root.join(PATH);
    let failed = |err: std::io::Error| format!("cannot keep the floor for later reports in {}: {err}", path.display());
    let text = serde_json::to_vec(floor).map_err(std::io::Error::from).map_err(failed)?;
    let directory = path.parent().map_or(Ok(()), |parent| DirBuilder::new().recursive(true).mode(0o755).create(parent));
    directory.and_then(|()| file::replace(&path, &text)).map_err(failed)
}

/// The floor that was measured since this boot; `None` without one.
pub(crate) fn read(fs: &HostFs, boot_id: Option<&str>) -> Option<Floor> {
    let text = fs.text(PATH).filter(|text| text.len() <= MOST_BYTES)?;
    serde_json::from_str::<Floor>(&text).ok().filter(|floor| boot_id.is_some() && floor.boot_id.as_deref() == boot_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use punctual_model::{Layer, LayerTotal, Span};

    #[test]
    fn a_floor_is_that_of_this_boot_only() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        let floor = Floor {
            boot_id: Some("this".to_owned()),
            started_unix_ms: 5,
            cpus: "1".parse().unwrap(),
            observed: Span(9),
            below: LayerTotal::none(Layer::FirmwareOrHost),
        };
        assert_eq!(read(&fs, Some("this")), None);
        keep_floor(&fs, &floor).unwrap();
        assert_eq!(read(&fs, Some("this")), Some(floor.clone()));
        assert_eq!((read(&fs, Some("other")), read(&fs, None)), (None, None));
        keep_floor(&fs, &Floor { boot_id: None, ..floor }).unwrap();
        assert_eq!(read(&fs, None), None);
    }
}

//! Whose output is imitated.

/// A layout of cyclictest's output: the histogram changed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Layout {
    /// Up to 2.6: rows of zeros and a line `# Total:`; threads are pinned without `-a` too.
    #[default]
    V2_4,
    /// From 2.7 on (rt-tests commits edba246, b02dde1): neither; threads are pinned with `-a` only.
    V2_7,
}

impl Layout {
    /// As the original prints its version, with `%1.2f`.
    pub(super) fn version(self) -> &'static str {
        match self {
            Layout::V2_4 => "2.40",
            Layout::V2_7 => "2.70",
        }
    }
}

//! Words, units and small values that everything else is made of.

pub(crate) mod cpuset;
pub(crate) mod histogram;
pub(crate) mod level;
pub(crate) mod own_name;
pub(crate) mod plain;
pub(crate) mod random;
pub(crate) mod schedule;
pub(crate) mod sorting;
pub(crate) mod units;
pub(crate) mod word;

pub use cpuset::{CpuSet, CpuSetError};
pub use histogram::{Bucket, Histogram, Slice};
pub use level::Level;
pub use own_name::OwnName;
pub use plain::{fnv1a, is_plain, plain, shell_word};
pub use random::{SplitMix64, planned_order};
pub use schedule::{Cycle, Schedule};
pub use sorting::Order;
pub use units::{ClockTime, LAST_UNIX_MS, MonoTime, Nanos, Period, Span, SpanError};
pub use word::{UnknownWord, nearest};

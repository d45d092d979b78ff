//! Words, units and small values that everything else is made of.

pub(crate) mod cpuset;
pub(crate) mod date;
pub(crate) mod hash;
pub(crate) mod histogram;
pub(crate) mod level;
pub(crate) mod order;
pub(crate) mod plain;
pub(crate) mod random;
pub(crate) mod schedule;
pub(crate) mod slice;
pub(crate) mod sorting;
pub(crate) mod units;
pub(crate) mod word;

pub use cpuset::{CpuSet, CpuSetError};
pub use date::LAST_UNIX_MS;
pub use hash::fnv1a;
pub use histogram::{Bucket, Histogram};
pub use level::Level;
pub use order::planned_order;
pub use plain::{is_plain, plain, shell_word};
pub use random::SplitMix64;
pub use schedule::{Cycle, Schedule};
pub use slice::Slice;
pub use sorting::Order;
pub use units::{ClockTime, MonoTime, Nanos, Period, Span, SpanError};
pub use word::{UnknownWord, nearest};

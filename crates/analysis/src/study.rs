//! Published studies: where the measurements of runs belong in their tables, and whether their conclusions hold here.

mod conclusion;
mod measured;
mod reach;

pub use conclusion::{StudyJudgment, StudyPart, StudyShown, StudyVerdict, judgments};
pub use measured::{SINGLES, StudyField, StudyMeasurement, StudyValue, common_operations, field, measurements, value};
pub use reach::{OutOfReach, out_of_reach};

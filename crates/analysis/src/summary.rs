//! Summaries of records and of imported measurements: each cell of a run in numbers, without judgment.

pub(crate) mod cell;
pub(crate) mod cost;
pub(crate) mod curves;
pub(crate) mod due_time;
pub(crate) mod floor;
pub(crate) mod imported;
pub(crate) mod instrument;
pub(crate) mod intensity;
pub(crate) mod late;
pub(crate) mod layers;
pub(crate) mod load_costs;
pub(crate) mod looks;
pub(crate) mod names;
pub(crate) mod noise;
pub(crate) mod open;
pub(crate) mod packets;
pub(crate) mod pool;
pub(crate) mod responses;
pub(crate) mod spread;
pub(crate) mod steadiness;
pub(crate) mod threads;
pub(crate) mod tracers;
pub(crate) mod trade_offs;
pub(crate) mod watched;
pub(crate) mod work;

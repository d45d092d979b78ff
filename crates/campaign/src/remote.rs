//! Other machines: this program is sent there once a campaign, and started behind a connection.

mod board;
mod connection;
mod delivery;
mod messages;
mod role;
mod serve;
mod transport;

pub(super) use board::Board;
pub(super) use delivery::Deliveries;
pub(super) use role::{RoleCommand, RunningRole};
pub use serve::serve;

//! Other machines: this program is sent there once a campaign, and started behind a connection.

mod board;
mod connection;
mod delivery;
mod files;
pub(super) mod messages;
mod output;
mod role;
mod transport;

pub(super) use board::Board;
pub(super) use delivery::Deliveries;
pub(super) use files::{ReceivedFiles, of_plan as files_of};
pub use output::output_from;
pub(super) use role::{RoleCommand, RunningRole};

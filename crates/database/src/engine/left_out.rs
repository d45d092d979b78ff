//! In place of an engine that is left out: no store opens.
#![allow(dead_code, reason = "each engine calls its own functions")]

use super::{Access, Failure};
use crate::{DatabaseError, Location, Part, Value};
use std::ops::ControlFlow;

/// There is none.
pub(crate) enum Connection {}

pub(super) fn open(_: &impl ?Sized, at: &Location, _: Access) -> Result<Connection, DatabaseError> {
    Err(DatabaseError::LeftOut(match at {
        Location::File(_) => punctual_model::left_out("stores in files", "history"),
        Location::Server(_) => punctual_model::left_out("PostgreSQL", "postgres"),
    }))
}

pub(super) fn begin(none: &mut Connection) -> Result<(), Failure> {
    match *none {}
}

pub(super) fn execute(none: &mut Connection, _: &str, _: &[Value]) -> Result<(), Failure> {
    match *none {}
}

pub(super) fn query(none: &mut Connection, _: &str, _: &[Value]) -> Result<Vec<Vec<Value>>, Failure> {
    match *none {}
}

pub(super) fn ask(none: &mut Connection, _: &str, _: &mut dyn FnMut(Part) -> ControlFlow<()>) -> Result<(), Failure> {
    match *none {}
}

//! PostgreSQL: a server for many machines; all tables are in the schema `punctual` of its database.

use super::{Access, Failure};
use crate::{DatabaseError, Location, Part, Value};
use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

pub(crate) use postgres::Client as Connection;

/// Timeout of the network's connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time without an answer of the network after which the connection is lost.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a whole connection, with the answers of a busy server.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// Rows of an answer that are fetched at once, and the bytes that these may have by the largest row so far.
const FETCHED_ROWS: usize = 1_000;
const FETCHED_BYTES: usize = 1 << 20;

/// Connects to the server. Its password may be in `PGPASSWORD`, because every user sees the words of a command.
pub(super) fn open(url: &str, at: &Location, access: Access) -> Result<Client, DatabaseError> {
    let failed = |reason: String| DatabaseError::Open { at: at.to_string(), reason };
    let mut config: Config = url
        .parse()
        .map_err(|err: postgres::Error| DatabaseError::Location { named: at.to_string(), reason: words(&err) })?;
    if config.get_ssl_mode() == SslMode::Require {
        let reason = "unsupported: sslmode=require; reach the server by a socket or through an SSH tunnel";
        return Err(failed(reason.to_owned()));
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_password().is_none() {
        std::env::var("PGPASSWORD").ok().map(|password| config.password(password));
    }
    if config.get_application_name().is_none() {
        config.application_name("punctual");
    }
    config.tcp_user_timeout(NETWORK_TIMEOUT).keepalives_idle(NETWORK_TIMEOUT);
    // A server that accepts the connection may never answer: the thread that waits for it then ends with this process.
    let (connected_tx, connected) = channel();
    let connect = move || drop(connected_tx.send(config.connect(NoTls)));
    Builder::new().spawn(connect).map_err(|err| failed(err.to_string()))?;
    let timeout = || failed(format!("timeout: no answer within {} s", OPEN_TIMEOUT.as_secs()));
    let client = connected.recv_timeout(OPEN_TIMEOUT).map_err(|_| timeout())?;
    let mut client = client.map_err(|err| failed(words(&err)))?;
    let prepare = |client: &mut Client| -> Result<(), postgres::Error> {
        if access == Access::Write {
            let exists = "SELECT 1 FROM pg_namespace WHERE nspname = 'punctual'";
            if client.query(exists, &[])?.is_empty() {
                client.batch_execute("CREATE SCHEMA IF NOT EXISTS punctual")?;
            }
        }
        let read_only = if access == Access::Read { "on" } else { "off" };
        client.batch_execute(&format!(
            "SET search_path TO punctual; SET lock_timeout TO '10s'; SET default_transaction_read_only TO {read_only}"
        ))
    };
    prepare(&mut client).map_err(|err| failed(words(&err)))?;
    Ok(client)
}

pub(super) fn begin(client: &mut Client) -> Result<(), Failure> {
    client.batch_execute("BEGIN").map_err(failure)?;
    // Runs and cells are looked up and then inserted: one writer at a time. Readers are not stopped.
    let lock = "SELECT pg_advisory_xact_lock(hashtext('punctual store'))";
    client.batch_execute(lock).map_err(failure)
}

pub(super) fn execute(client: &mut Client, sql: &str, parameters: &[Value]) -> Result<(), Failure> {
    if parameters.is_empty() {
        return client.batch_execute(sql).map_err(failure);
    }
    client.execute(sql, &borrowed(parameters)).map(|_| ()).map_err(failure)
}

pub(super) fn query(client: &mut Client, sql: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, Failure> {
    let found = client.query(sql, &borrowed(parameters)).map_err(failure)?;
    found.iter().map(|row| (0..row.len()).map(|index| value(row, index)).collect()).collect()
}

/// One statement of the user, in a transaction that cannot write. Its fields come as text, of whatever type they are.
pub(super) fn ask(
    client: &mut Client,
    sql: &str,
    each: &mut dyn FnMut(Part) -> ControlFlow<()>,
) -> Result<(), Failure> {
    // Refuses several statements, of which the first could end the transaction.
    let statement = client.prepare(sql).map_err(failure)?;
    let types: Vec<Type> = statement.columns().iter().map(|column| column.type_().clone()).collect();
    if each(Part::Columns(statement.columns().iter().map(|column| column.name().to_owned()).collect())).is_break() {
        return Ok(());
    }
    // The cursor delivers all rows in the end, so that the server plans for all.
    client.batch_execute("BEGIN READ ONLY; SET LOCAL cursor_tuple_fraction TO 1").map_err(failure)?;
    let answered = answer(client, sql, &types, each).map_err(failure);
    let _ = client.batch_execute("ROLLBACK");
    answered
}

/// Rows by a cursor, some at a time; all at once of a statement without cursors (SHOW, EXPLAIN), whose rows are few.
fn answer(
    client: &mut Client,
    sql: &str,
    types: &[Type],
    each: &mut dyn FnMut(Part) -> ControlFlow<()>,
) -> Result<(), postgres::Error> {
    let mut hand_out = |messages: &[SimpleQueryMessage]| {
        let (mut rows, mut largest) = (0, 0);
        for message in messages {
            let SimpleQueryMessage::Row(row) = message else { continue };
            (rows, largest) = (rows + 1, largest.max((0..row.len()).filter_map(|n| row.get(n)).map(str::len).sum()));
            if each(Part::Row(types.iter().enumerate().map(|(n, ty)| field(row.get(n), ty)).collect())).is_break() {
                return None;
            }
        }
        Some((rows, largest))
    };
    client.batch_execute("SAVEPOINT cursor")?;
    match client.batch_execute(&format!("DECLARE answer NO SCROLL CURSOR FOR {sql}")) {
        Err(err) if err.code() == Some(&SqlState::SYNTAX_ERROR) => {
            client.batch_execute("ROLLBACK TO cursor")?;
            hand_out(&client.simple_query(sql)?);
            return Ok(());
        }
        declared => declared?,
    }
    let (mut asked, mut largest) = (1, 1);
    while let Some((rows, size)) = hand_out(&client.simple_query(&format!("FETCH {asked} FROM answer"))?)
        && rows == asked
    {
        largest = size.max(largest);
        asked = (asked * 2).min(FETCHED_BYTES / largest).clamp(1, FETCHED_ROWS);
    }
    Ok(())
}

/// The value of a field that came as text.
fn field(text: Option<&str>, ty: &Type) -> Value {
    let Some(text) = text else { return Value::Null };
    let number = match *ty {
        Type::INT2 | Type::INT4 | Type::INT8 => text.parse().map(Value::Int).ok(),
        Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC => text.parse().map(Value::Real).ok(),
        _ => None,
    };
    number.unwrap_or_else(|| Value::text(text))
}

fn borrowed(parameters: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    parameters.iter().map(|value| -> &(dyn ToSql + Sync) { value }).collect()
}

fn value(row: &postgres::Row, index: usize) -> Result<Value, Failure> {
    let ty = row.columns().get(index).map(|column| column.type_().clone());
    let unknown = || Failure::Other(format!("column {index} has another type than expected"));
    Ok(match ty.ok_or_else(unknown)? {
        Type::INT8 => row.try_get::<_, Option<i64>>(index).map_err(failure)?.map_or(Value::Null, Value::Int),
        Type::INT4 => {
            row.try_get::<_, Option<i32>>(index).map_err(failure)?.map_or(Value::Null, |n| Value::Int(n.into()))
        }
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(index).map_err(failure)?.map_or(Value::Null, Value::Real),
        Type::TEXT => row.try_get::<_, Option<String>>(index).map_err(failure)?.map_or(Value::Null, Value::Text),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index).map_err(failure)?.map_or(Value::Null, Value::Bytes),
        _ => return Err(unknown()),
    })
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(n) if *ty == Type::FLOAT8 => (*n as f64).to_sql(ty, out),
            Value::Int(n) if *ty == Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
            Value::Int(n) => n.to_sql(ty, out),
            Value::Real(x) => x.to_sql(ty, out),
            Value::Text(text) => text.to_sql(ty, out),
            Value::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::FLOAT8, Type::TEXT, Type::NAME, Type::BYTEA].contains(ty)
    }

    postgres::types::to_sql_checked!();
}

fn failure(err: postgres::Error) -> Failure {
    let is_lock = err.code() == Some(&SqlState::LOCK_NOT_AVAILABLE);
    if is_lock { Failure::Locked } else { Failure::Other(words(&err)) }
}

/// The message of the server, or of the network.
fn words(err: &postgres::Error) -> String {
    if let Some(of_server) = err.as_db_error() {
        return of_server.message().to_owned();
    }
    err.source().map_or_else(|| err.to_string(), |source| format!("{err}: {source}"))
}

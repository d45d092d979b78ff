//! Values of both engines, and tables of them.

use punctual_model::plain;

/// One field of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// A number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// The text without characters that act on a terminal; PostgreSQL refuses NUL.
    pub(crate) fn text(text: &str) -> Value {
        Value::Text(plain(text).into_owned())
    }

    /// The whole number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        if let Value::Int(n) = self { Some(*n) } else { None }
    }

    /// The whole number as one that is not negative.
    pub fn as_unsigned(&self) -> Option<u64> {
        self.as_int().and_then(|n| u64::try_from(n).ok())
    }

    /// The number, whole or not.
    pub fn as_real(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Real(x) => Some(*x),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The bytes, if they are such.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if let Value::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(n: u32) -> Value {
        Value::Int(n.into())
    }
}

impl From<usize> for Value {
    fn from(n: usize) -> Value {
        Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Value {
        Value::Int(is.into())
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        if x.is_finite() { Value::Real(x) } else { Value::Null }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// Part of the answer to a query, in the order of delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Names of the columns.
    Columns(Vec<String>),
    /// A row, with a value for each column.
    Row(Vec<Value>),
}

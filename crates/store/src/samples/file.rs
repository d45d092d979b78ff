//! A Parquet file of samples, written row group by row group.

use super::UNFINISHED;
use crate::StoreError;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use punctual_host::file::Replacement;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is not complete.
#[derive(Debug)]
pub(super) struct SampleFile {
    path: PathBuf,
    writer: SerializedFileWriter<Replacement>,
}

/// What the rows of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Samples,
    Activations,
}

/// The values of a column.
#[derive(Debug)]
pub(super) enum Column<'a> {
    Ints(Vec<i32>),
    Longs(&'a [i64]),
}

impl SampleFile {
    /// Begins a file of this schema that is named `path` when it is complete.
    pub(super) fn begin(path: &Path, schema: &str, kind: Kind) -> Result<SampleFile, StoreError> {
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::SamplesExist(path.to_owned()));
        }
        let file = Replacement::new(path, UNFINISHED).map_err(StoreError::io("make", path))?;
        let schema = parse_message_type(schema).map_err(failed(path))?;
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties(kind)));
        Ok(SampleFile { path: path.to_owned(), writer: writer.map_err(failed(path))? })
    }

    /// Writes a row group.
    pub(super) fn write(&mut self, columns: &[Column<'_>]) -> Result<(), StoreError> {
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.writer.next_row_group()?;
            for values in columns {
                match values {
                    Column::Ints(values) => column::<Int32Type>(&mut group, values)?,
                    Column::Longs(values) => column::<Int64Type>(&mut group, values)?,
                }
            }
            group.close().map(drop)
        };
        write().map_err(failed(&self.path))
    }

    /// Moves the rows of `part`, a complete file, to the end of this one without recompression.
    pub(super) fn splice(&mut self, part: &Path) -> Result<(), StoreError> {
        let mut splice = || -> Result<(), ParquetError> {
            let file = File::open(part)?;
            let reader = SerializedFileReader::new(file.try_clone()?)?;
            for rows in reader.metadata().row_groups() {
                let mut group = self.writer.next_row_group()?;
                for column in rows.columns() {
                    let close = ColumnCloseResult {
                        bytes_written: u64::try_from(column.compressed_size()).unwrap_or(0),
                        rows_written: u64::try_from(rows.num_rows()).unwrap_or(0),
                        metadata: column.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    group.append_column(&file, close)?;
                }
                group.close()?;
            }
            Ok(())
        };
        splice().map_err(failed(&self.path))
    }

    /// Writes the metadata; then renames the file and syncs it to disk.
    pub(super) fn complete(
        mut self,
        about: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<(), StoreError> {
        for (key, value) in about {
            self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        let mut named = || {
            self.writer.finish().map_err(io_error)?;
            self.writer.inner_mut().commit()
        };
        named().map_err(StoreError::io("write samples to", &self.path))
    }
}

/// Storage options of the columns. Measured on samples; see docs/decisions.md.
fn properties(kind: Kind) -> WriterProperties {
    let common = WriterProperties::builder()
        .set_created_by(punctual_model::TOOL.to_owned())
        .set_compression(Compression::GZIP(Default::default()));
    if kind == Kind::Activations {
        return common.build();
    }
    let [cycle, latency] = ["cycle", "latency_ns"].map(ColumnPath::from);
    common
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_column_dictionary_enabled(cycle.clone(), false)
        .set_column_encoding(cycle, Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(latency.clone(), false)
        .set_column_encoding(latency, Encoding::BYTE_STREAM_SPLIT)
        .build()
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Replacement>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("a column too many".to_owned()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn failed(path: &Path) -> impl FnOnce(ParquetError) -> StoreError + use<> {
    let path = path.to_owned();
    move |err| StoreError::Io { action: "write samples to", path, source: io_error(err) }
}

/// The underlying I/O error, if there is one.
fn io_error(err: ParquetError) -> io::Error {
    match err {
        ParquetError::External(err) => err.downcast().map_or_else(io::Error::other, |err| *err),
        err => io::Error::other(err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_room_is_the_kernels_own_word() {
        let err = ParquetError::from(io::Error::from_raw_os_error(28));
        assert_eq!(io_error(err).to_string(), "No space left on device (os error 28)");
    }
}

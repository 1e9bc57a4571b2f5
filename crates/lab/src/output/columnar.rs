//! Tables of results in the memory layout of Arrow, and as Parquet files.

use crate::report::field::Field;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, NullArray, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{Field as Column, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Version of the columns. A change that breaks readers adds one.
const SCHEMA_VERSION: &str = "1";

/// Origin of a table, for the metadata of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Seed of all runs; `None` if the runs have several.
    pub seed: Option<u64>,
    /// Hash of the scenario.
    pub scenario_hash: String,
}

/// Table of named columns. The metadata have the schema's version, the program's version, the scenario hash and the seed.
///
/// # Panics
///
/// If the columns differ in length.
pub fn columns(columns: Vec<(&str, ArrayRef)>, origin: &Origin) -> RecordBatch {
    let fields = columns
        .iter()
        .map(|(name, values)| Column::new(*name, values.data_type().clone(), true));
    let fields: Vec<Column> = fields.collect();
    let metadata = [
        ("headtime.schema", Some(SCHEMA_VERSION.to_owned())),
        (
            "headtime.version",
            Some(env!("CARGO_PKG_VERSION").to_owned()),
        ),
        ("headtime.scenario_hash", Some(origin.scenario_hash.clone())),
        ("headtime.seed", origin.seed.map(|seed| seed.to_string())),
    ];
    let metadata = metadata.into_iter();
    let metadata = metadata.filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let schema = Schema::new(fields).with_metadata(metadata.collect::<BTreeMap<_, _>>());
    let arrays = columns.into_iter().map(|(_, values)| values).collect();
    let batch = RecordBatch::try_new(Arc::new(schema), arrays);
    batch.expect("the columns have one length")
}

/// Table of rows with the same headings.
pub fn rows(names: &[&str], rows: &[Vec<Field>], origin: &Origin) -> RecordBatch {
    let named = names.iter().enumerate();
    let named = named.map(|(at, name)| (*name, column(rows, at)));
    columns(named.collect(), origin)
}

/// A column of some rows. A column without values has no type.
fn column(rows: &[Vec<Field>], at: usize) -> ArrayRef {
    let fields = || rows.iter().map(|row| &row[at]);
    let has = |kind: fn(&Field) -> bool| fields().any(kind);
    if has(|field| matches!(field, Field::Text(_))) {
        let texts = fields().map(|field| match field {
            Field::Nothing => None,
            field => Some(field.to_string()),
        });
        Arc::new(texts.collect::<StringArray>())
    } else if has(|field| matches!(field, Field::Flag(_))) {
        let flags = fields().map(|field| match field {
            Field::Flag(flag) => Some(*flag),
            _ => None,
        });
        Arc::new(flags.collect::<BooleanArray>())
    } else if has(|field| matches!(field, Field::Number(_))) {
        Arc::new(fields().map(Field::number).collect::<Float64Array>())
    } else if has(|field| matches!(field, Field::Count(_))) {
        let counts = fields().map(|field| match field {
            Field::Count(count) => Some(*count),
            _ => None,
        });
        Arc::new(counts.collect::<UInt64Array>())
    } else {
        Arc::new(NullArray::new(rows.len()))
    }
}

/// A table as a Parquet file, compressed by Snappy. The file has the table's metadata. Equal tables give equal bytes.
#[cfg(feature = "parquet")]
pub fn parquet(table: &RecordBatch) -> Vec<u8> {
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::WriterProperties;

    let metadata: Vec<KeyValue> = table
        .schema()
        .metadata()
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("headtime ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(metadata));
    let mut bytes = Vec::new();
    let writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties.build()));
    let mut writer = writer.expect("all types of columns are types of Parquet");
    // The file is in memory.
    writer.write(table).expect("memory takes all bytes");
    writer.close().expect("memory takes all bytes");
    bytes
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;
    use arrow_array::Array;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn a_parquet_file_has_types_gaps_and_metadata() {
        let rows = [
            vec![
                Field::Count(u64::MAX),
                Field::Number(0.5),
                Field::Text("noop".to_owned()),
                Field::Flag(true),
                Field::Nothing,
            ],
            vec![
                Field::Nothing,
                Field::Count(7),
                Field::Nothing,
                Field::Nothing,
                Field::Nothing,
            ],
        ];
        let origin = Origin {
            seed: Some(3),
            scenario_hash: "abc".to_owned(),
        };
        let names = ["requests", "iops", "scheduler", "merge", "none"];
        let table = super::rows(&names, &rows, &origin);
        let bytes = parquet(&table);
        assert_eq!(bytes, parquet(&table.clone()), "the same bytes each time");
        let folder = headtime_testkit::Folder::new();
        let path = folder.join("runs.parquet");
        std::fs::write(&path, bytes).expect("writes");
        let file = std::fs::File::open(path).expect("opens");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
        let metadata = reader.schema().metadata().clone();
        assert_eq!(metadata["headtime.scenario_hash"], "abc");
        assert_eq!(metadata["headtime.seed"], "3");
        let read = reader.build().expect("a reader").next().expect("a batch");
        let read = read.expect("a batch");
        assert_eq!(read.num_rows(), 2);
        for (before, after) in table.columns().iter().zip(read.columns()) {
            assert_eq!(before.to_data(), after.to_data());
        }
    }

    #[test]
    fn a_table_without_rows_is_a_file() {
        let origin = Origin {
            seed: None,
            scenario_hash: String::new(),
        };
        let table = super::rows(&["iops"], &[], &origin);
        assert!(!parquet(&table).is_empty());
        assert!(!table.schema().metadata().contains_key("headtime.seed"));
    }
}

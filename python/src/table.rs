//! Tables of results, in the memory layout of Arrow.
//!
//! A table gives its memory away through Arrow's C stream, without a copy: pyarrow, pandas and polars take it.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, NullArray, RecordBatch, RecordBatchIterator,
    StringArray, UInt64Array,
};
use arrow_schema::{Field as Column, Schema};
use headtime_lab::report::field::Field;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::collections::HashMap;
use std::sync::Arc;

/// A table of results, for `pyarrow.table(..)`, `polars.DataFrame(..)` and every other reader of Arrow's C stream.
#[pyclass(frozen, module = "headtime")]
pub struct Table(RecordBatch);

/// Tells where a table is from; becomes the metadata of the schema.
#[derive(Clone)]
pub struct Origin {
    pub seed: Option<u64>,
    pub scenario_hash: String,
}

impl Table {
    /// A table of named columns of one length.
    pub fn new(columns: Vec<(&str, ArrayRef)>, origin: &Origin) -> Table {
        let fields = columns
            .iter()
            .map(|(name, values)| Column::new(*name, values.data_type().clone(), true));
        let fields: Vec<Column> = fields.collect();
        let metadata = [
            ("headtime.schema", Some("1".to_owned())),
            (
                "headtime.version",
                Some(env!("CARGO_PKG_VERSION").to_owned()),
            ),
            ("headtime.scenario_hash", Some(origin.scenario_hash.clone())),
            ("headtime.seed", origin.seed.map(|seed| seed.to_string())),
        ];
        let metadata = metadata.into_iter();
        let metadata = metadata.filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let schema = Schema::new(fields).with_metadata(metadata.collect::<HashMap<_, _>>());
        let arrays = columns.into_iter().map(|(_, values)| values).collect();
        let batch = RecordBatch::try_new(Arc::new(schema), arrays);
        Table(batch.expect("the columns have one length"))
    }

    /// A table of rows with the same headings.
    pub fn of_rows(names: &[&str], rows: &[Vec<Field>], origin: &Origin) -> Table {
        let columns = names.iter().enumerate();
        let columns = columns.map(|(at, name)| (*name, column(rows, at)));
        Table::new(columns.collect(), origin)
    }
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

/// A column as Python objects.
fn objects<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    let any = array.as_any();
    if let Some(texts) = any.downcast_ref::<StringArray>() {
        PyList::new(py, texts.iter().collect::<Vec<_>>())
    } else if let Some(flags) = any.downcast_ref::<BooleanArray>() {
        PyList::new(py, flags.iter().collect::<Vec<_>>())
    } else if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        PyList::new(py, numbers.iter().collect::<Vec<_>>())
    } else if let Some(counts) = any.downcast_ref::<UInt64Array>() {
        PyList::new(py, counts.iter().collect::<Vec<_>>())
    } else {
        PyList::new(py, vec![None::<u64>; array.len()])
    }
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may ask for another schema, and has to cope with this one.
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// A column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column_by_name(name);
        let column = column.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        objects(py, column)
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.0.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    /// Version, scenario hash and seed of the results.
    #[getter]
    fn metadata(&self) -> HashMap<String, String> {
        self.0.schema().metadata().clone().into()
    }

    /// The table as a dict of lists.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, column) in self.0.schema().fields().iter().zip(self.0.columns()) {
            dict.set_item(field.name(), objects(py, column)?)?;
        }
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.0.num_rows(), self.0.num_columns());
        format!("<headtime.Table of {rows} rows and {columns} columns>")
    }
}

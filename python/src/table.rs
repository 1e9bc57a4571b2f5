//! Tables of results, in the memory layout of Arrow.
//!
//! A table gives its memory away through Arrow's C stream, without a copy: pyarrow, pandas and polars take it.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use headtime_lab::output::columnar::{self, Origin};
use headtime_lab::report::field::Field;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::collections::HashMap;

/// A table of results, for `pyarrow.table(..)`, `polars.DataFrame(..)` and every other reader of Arrow's C stream.
#[pyclass(frozen, module = "headtime")]
pub struct Table(RecordBatch);

impl Table {
    /// A table of named columns of one length.
    pub fn new(columns: Vec<(&str, ArrayRef)>, origin: &Origin) -> Table {
        Table(columnar::columns(columns, origin))
    }

    /// A table of rows with the same headings.
    pub fn of_rows(names: &[&str], rows: &[Vec<Field>], origin: &Origin) -> Table {
        Table(columnar::rows(names, rows, origin))
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

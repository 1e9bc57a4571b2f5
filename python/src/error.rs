//! Faults as exceptions of `headtime._errors`.

use headtime_config::Place;
use headtime_lab::fault::Fault;
use pyo3::prelude::*;

/// A fault, or an exception that Python code raised meanwhile.
pub enum Failure {
    Fault(Fault),
    Raised(PyErr),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Fault(fault)
    }
}

impl From<headtime_config::Error> for Failure {
    fn from(error: headtime_config::Error) -> Failure {
        Failure::Fault(error.into())
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Raised(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Raised(error) => error,
            Failure::Fault(fault) => Python::attach(|py| exception(py, &fault)),
        }
    }
}

fn exception(py: Python<'_>, fault: &Fault) -> PyErr {
    let text = fault.to_string();
    let (mut file, mut line, mut key) = (None, None, None);
    if let Fault::Text(error) = fault {
        line = error.line();
        key = Some(error.key.as_str()).filter(|key| !key.is_empty());
        if let Place::Line(name, _) | Place::Key(name, ..) = &error.place {
            file = Some(&**name);
        }
    }
    let class = match fault {
        Fault::Check(_) | Fault::Differs(_) => "CheckError",
        Fault::Text(error) if matches!(error.place, Place::Option(_)) => "UsageError",
        Fault::Usage(_) => "UsageError",
        Fault::File(_) => {
            // "NAME: cannot open: reason"
            file = text.find(": cannot ").map(|end| &text[..end]);
            "FileError"
        }
        _ => "ScenarioError",
    };
    let raise = || {
        let class = py.import("headtime._errors")?.getattr(class)?;
        class.call1((&text, file, line, key))
    };
    match raise() {
        Ok(raised) => PyErr::from_value(raised),
        Err(error) => error,
    }
}

//! Long work on a thread of its own. Meanwhile Python runs, sees Ctrl-C and shows progress.

use crate::error::Failure;
use headtime_lab::execute::With;
use headtime_lab::fault::Fault;
use headtime_lab::progress::{Bar, Progress, STEPS};
use headtime_lab::stock::Stock;
use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Time between two looks at signals and progress.
const PATIENCE: Duration = Duration::from_millis(100);

/// Progress as numbers.
#[derive(Default)]
struct Steps {
    all: AtomicU64,
    done: AtomicU64,
    text: Mutex<String>,
}

struct Counter(Arc<Steps>);

impl Bar for Counter {
    fn begin(&self, steps: u64) {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.all.store(steps, Ordering::Relaxed);
    }

    fn say(&self, text: &str) {
        *self.0.text.lock().expect("nothing panics under the lock") = text.to_owned();
    }

    fn advance(&self, steps: u64) {
        self.0.done.fetch_add(steps, Ordering::Relaxed);
    }

    fn end(&self) {}
}

impl Steps {
    /// Calls `show(done, all, text)`, in runs.
    fn show(&self, show: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(show) = show else { return Ok(()) };
        let runs = |steps: &AtomicU64| steps.load(Ordering::Relaxed) as f64 / STEPS as f64;
        let text = self.text.lock().expect("nothing panics under the lock");
        let text = text.clone();
        show.call1((runs(&self.done), runs(&self.all), text))?;
        Ok(())
    }
}

/// Makes a local copy of an object, as `headtime._remote.fetch` does.
fn fetch(url: &str) -> Result<String, Fault> {
    Python::attach(|py| {
        let copied = || {
            let fetch = py.import("headtime._remote")?.getattr("fetch")?;
            fetch.call1((url,))?.extract()
        };
        copied().map_err(|error: PyErr| {
            let text = error.value(py).to_string();
            let class = error.get_type(py).name();
            match class.is_ok_and(|name| name == "UsageError") {
                true => Fault::Usage(text),
                false => Fault::File(text),
            }
        })
    })
}

/// Waits for `work`. A signal that raises an exception, such as Ctrl-C, stops the work.
pub fn wait<T: Send>(
    py: Python<'_>,
    show: Option<Py<PyAny>>,
    work: impl FnOnce(With<'_>) -> Result<T, Fault> + Send,
) -> Result<T, Failure> {
    let (steps, stop) = (Arc::new(Steps::default()), AtomicBool::new(false));
    let stopped = || stop.load(Ordering::Relaxed);
    let progress = Progress::new(Box::new(Counter(Arc::clone(&steps))));
    let stock = Stock::fetching(fetch);
    let mut raised = None;
    let done = py.detach(|| {
        let look = || {
            Python::attach(|py| {
                py.check_signals()?;
                steps.show(show.as_ref().map(|show| show.bind(py)))
            })
        };
        thread::scope(|scope| {
            let (result, done) = mpsc::channel();
            let with = With {
                stock: &stock,
                progress: &progress,
                stop: Some(&stopped),
            };
            let worker = scope.spawn(move || {
                // The receiver waits until the thread has ended.
                let _ = result.send(work(with));
            });
            loop {
                match done.recv_timeout(PATIENCE) {
                    Ok(done) => break done,
                    Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                        if let Err(error) = look() {
                            raised = Some(error);
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => match worker.join() {
                        Err(panic) => resume_unwind(panic),
                        Ok(()) => unreachable!("the thread sends before it ends"),
                    },
                }
            }
        })
    });
    if let Some(error) = raised {
        return Err(error.into());
    }
    steps.show(show.as_ref().map(|show| show.bind(py)))?;
    Ok(done?)
}

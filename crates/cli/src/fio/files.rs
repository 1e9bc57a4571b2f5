//! Where the files of jobs lie on the drive.

use super::job::Job;
use super::read::File;
use headtime_config::Error;
use headtime_units::Bytes;
use std::collections::BTreeMap;

/// Files begin at multiples of this many bytes.
const BLOCK: u64 = 1 << 20;

/// The places of the files of all jobs.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The beginning of each file, by path.
    starts: BTreeMap<String, u64>,
    /// Each file in order, with its end.
    laid: Vec<(String, u64)>,
}

/// The file of a copy of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A whole drive.
    Device(String),
    File(String),
}

impl Files {
    /// Lays the files of all jobs one behind the other, from the beginning of the drive.
    ///
    /// # Errors
    ///
    /// If the jobs use two drives, a file has no known length, or 64 bits do not hold all files.
    pub fn lay(file: &File, jobs: &[Job<'_>]) -> Result<Files, Error> {
        let mut ends: BTreeMap<String, u64> = BTreeMap::new();
        let (mut order, mut device) = (Vec::new(), None);
        for job in jobs {
            for copy in 0..job.parts() {
                let error = |key: &str, problem: String| Err(job.values.error(key, problem));
                let name = match job.target(copy) {
                    Target::Device(name) => Some(name),
                    Target::File(path) => {
                        let Some(end) = job.end(copy)? else {
                            return error(
                                "size",
                                format!("nothing says how long {path} is; give size"),
                            );
                        };
                        let known = ends.entry(path.clone()).or_insert_with(|| {
                            order.push(path);
                            0
                        });
                        *known = end.max(*known);
                        None
                    }
                };
                let drive = device.get_or_insert_with(|| name.clone());
                if *drive != name {
                    let files = || "files".to_owned();
                    let (one, other) = (drive.clone(), name);
                    let problem = format!(
                        "one drive is simulated, and there are {} and {}; give each a job file",
                        one.unwrap_or_else(files),
                        other.unwrap_or_else(files)
                    );
                    return error("filename", problem);
                }
            }
        }
        let (mut files, mut next) = (Files::default(), 0_u64);
        for path in order {
            files.starts.insert(path.clone(), next);
            let end = next.checked_add(ends[&path]);
            let end = end.filter(|end| *end < i64::MAX as u64 - BLOCK);
            let Some(end) = end else {
                return Err(file.error(1, "size", "the files together are too large"));
            };
            files.laid.push((path, end));
            next = end.next_multiple_of(BLOCK);
        }
        Ok(files)
    }

    pub fn start(&self, target: &Target) -> u64 {
        match target {
            Target::Device(_) => 0,
            Target::File(path) => self.starts.get(path).copied().unwrap_or_default(),
        }
    }

    /// Where they lie, for people, if there are any.
    pub fn note(&self) -> Option<String> {
        /// More say less.
        const NAMED: usize = 8;
        let place = |(path, end): &(String, u64)| {
            format!("{path} at {}..{}", Bytes(self.starts[path]), Bytes(*end))
        };
        let mut places: Vec<String> = self.laid.iter().take(NAMED).map(place).collect();
        if self.laid.len() > NAMED {
            places.push(format!("{} more", self.laid.len() - NAMED));
        }
        let places = (!places.is_empty()).then(|| places.join(", "));
        places.map(|places| format!("files lie one behind the other: {places}"))
    }
}

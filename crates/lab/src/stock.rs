//! Data that scenarios share, made once for all scenarios and threads: drives, assumed drives, traces, files on disks.
//!
//! Files are read once. Every other item is found by its inputs and never by its user, so that a result does not depend on earlier
//! requests.

use crate::fault::Fault;
use crate::files::is_url;
use crate::hash::Hash;
use crate::scenario::Replay;
use headtime_bound::Bound;
use headtime_disk::Layout;
use headtime_disk::profile::Profile;
use headtime_host::DiskSize;
use headtime_host::workload::{BenchmarkError, BenchmarkSpec, Laid, ReplaySpec};
use headtime_qos::{Model, Profile as RunProfile};
use headtime_stack::drives::{self, Findings};
use headtime_stack::{Beliefs, Known, Source};
use headtime_workload::{Script, Trace};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

/// Items by the text of their inputs. Beyond `most` items, the least recently used item is dropped.
struct Memo<T> {
    most: usize,
    kept: Mutex<Shelf<T>>,
}

struct Shelf<T> {
    /// Items, each with the time of its last use.
    things: BTreeMap<String, (Arc<OnceLock<T>>, u64)>,
    now: u64,
}

impl<T: Clone> Memo<T> {
    fn new(most: usize) -> Memo<T> {
        Memo {
            most,
            kept: Mutex::new(Shelf {
                things: BTreeMap::new(),
                now: 0,
            }),
        }
    }

    /// Returns the item of `key`, and makes the item if it is missing. Callers with the same key wait meanwhile. Callers with another key
    /// do not wait.
    fn get(&self, key: String, make: impl FnOnce() -> T) -> T {
        let slot = {
            let mut kept = self.kept.lock().expect("nothing is made under the lock");
            kept.now += 1;
            let now = kept.now;
            let (slot, used) = kept.things.entry(key).or_default();
            *used = now;
            let slot = Arc::clone(slot);
            if kept.things.len() > self.most {
                let oldest = kept.things.iter().min_by_key(|(_, (_, used))| *used);
                let oldest = oldest.map(|(key, _)| key.clone());
                oldest.and_then(|key| kept.things.remove(&key));
            }
            slot
        };
        slot.get_or_init(make).clone()
    }
}

/// Makes a local copy of an object in a store, and returns its name.
pub type Fetch = fn(url: &str) -> Result<String, Fault>;

/// Data that scenarios share. Limits are high for small items and low for large items.
pub struct Stock {
    fetch: Option<Fetch>,
    profiles: Memo<Result<(Profile, Findings), Fault>>,
    probed: Memo<Result<Profile, Fault>>,
    layouts: Memo<Arc<Layout>>,
    known: Memo<Arc<Known>>,
    traces: Memo<Result<(Arc<Trace>, String), Fault>>,
    scripts: Memo<Result<Arc<Script>, Fault>>,
    laid: Memo<Result<Laid, BenchmarkError>>,
    traced: Memo<Result<Laid, Fault>>,
    bounds: Memo<Result<Option<Arc<Bound>>, Fault>>,
    profiled: Memo<Result<Arc<RunProfile>, Fault>>,
    trained: Memo<Result<Arc<Model>, Fault>>,
}

impl fmt::Debug for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stock").finish_non_exhaustive()
    }
}

/// Limit for profiles, of some kilobytes each.
const SMALL: usize = 4096;
/// Limit for tables of a drive's seeks and for file systems full of files, of some megabytes each.
const LARGE: usize = 64;
/// Limit for traces, of tens of megabytes each and more.
const HUGE: usize = 8;

impl Default for Stock {
    fn default() -> Stock {
        Stock {
            fetch: None,
            profiles: Memo::new(SMALL),
            probed: Memo::new(SMALL),
            layouts: Memo::new(SMALL),
            known: Memo::new(LARGE),
            traces: Memo::new(HUGE),
            scripts: Memo::new(HUGE),
            laid: Memo::new(LARGE),
            traced: Memo::new(HUGE),
            bounds: Memo::new(SMALL),
            profiled: Memo::new(LARGE),
            trained: Memo::new(LARGE),
        }
    }
}

impl Stock {
    /// An empty stock that copies traces from stores.
    pub fn fetching(fetch: Fetch) -> Stock {
        Stock {
            fetch: Some(fetch),
            ..Stock::default()
        }
    }

    /// The local file of a name, which may be a URL.
    ///
    /// # Errors
    ///
    /// The errors of the copying.
    pub fn local(&self, name: &str) -> Result<String, Fault> {
        match self.fetch {
            Some(fetch) if is_url(name) => fetch(name),
            _ => Ok(name.to_owned()),
        }
    }

    /// The profile of a name or file, and the findings of the import if the profile had to be imported.
    ///
    /// # Errors
    ///
    /// As [`drives::open`].
    pub fn profile(&self, name: &str) -> Result<(Profile, Findings), Fault> {
        let open = || Ok(drives::open_with_findings(name)?);
        self.profiles.get(name.to_owned(), open)
    }

    /// The profile that schedulers assume.
    ///
    /// # Errors
    ///
    /// As [`Source::open`].
    pub fn believed(&self, source: Source<'_>) -> Result<Profile, Fault> {
        match source {
            Source::Named(name) => Ok(self.profile(name)?.0),
            Source::Probed(drive) => {
                let probe = || Ok(source.open()?);
                self.probed.get(drive.to_toml(), probe)
            }
        }
    }

    /// Layout of a drive's sectors; `text` is the drive's profile as text.
    pub fn layout(&self, profile: &Profile, text: &str) -> Arc<Layout> {
        let lay = || Arc::new(Layout::new(profile));
        self.layouts.get(text.to_owned(), lay)
    }

    /// The drive as schedulers know it. The model and the curve are made when first needed, and shared.
    pub fn known(&self, beliefs: Beliefs) -> Arc<Known> {
        let mut key = beliefs
            .drive
            .as_ref()
            .map_or_else(String::new, Profile::to_toml);
        if let Some((_, text)) = &beliefs.curve {
            key += text;
        }
        self.known.get(key, || Arc::new(beliefs.into()))
    }

    /// The trace that a scenario replays, and the hash of its requests.
    ///
    /// # Errors
    ///
    /// The errors of `read`.
    pub fn trace(
        &self,
        replay: &Replay,
        read: impl FnOnce() -> Result<Trace, Fault>,
    ) -> Result<(Arc<Trace>, String), Fault> {
        let key = format!("{:?}", (&replay.file, &replay.reading, replay.is_whole()));
        self.traces.get(key, || {
            let trace = read()?;
            let mut hash = Hash::default();
            hash.trace(&trace);
            Ok((Arc::new(trace), hash.finish()))
        })
    }

    /// Some devices of a trace on a drive.
    ///
    /// # Errors
    ///
    /// The errors of `make`.
    pub fn script(
        &self,
        replay: &Replay,
        devices: &[u32],
        disk: DiskSize,
        make: impl FnOnce() -> Result<Script, Fault>,
    ) -> Result<Arc<Script>, Fault> {
        let trace = (&replay.file, &replay.reading, replay.fit, &replay.roles);
        let key = format!("{:?}", (trace, devices, disk));
        self.scripts.get(key, || make().map(Arc::new))
    }
}

impl Stock {
    /// The files of a benchmark on a disk.
    ///
    /// # Errors
    ///
    /// As [`BenchmarkSpec::lay`].
    pub fn laid(
        &self,
        benchmark: &BenchmarkSpec,
        disk: DiskSize,
        seed: u64,
    ) -> Result<Laid, BenchmarkError> {
        let key = format!("{:?}", (benchmark, disk, seed));
        self.laid.get(key, || benchmark.lay(disk, seed))
    }

    /// The requests of a program's trace on a disk.
    ///
    /// # Errors
    ///
    /// The errors of `make`.
    pub fn traced(
        &self,
        replay: &ReplaySpec,
        disk: DiskSize,
        make: impl FnOnce() -> Result<Laid, Fault>,
    ) -> Result<Laid, Fault> {
        self.traced.get(format!("{:?}", (replay, disk)), make)
    }

    /// The bound of a run's whole work. `key` is the text of everything that the bound depends on. `None` if the work is too large.
    ///
    /// # Errors
    ///
    /// The errors of `compute`.
    pub fn bound(
        &self,
        key: String,
        compute: impl FnOnce() -> Result<Option<Bound>, Fault>,
    ) -> Result<Option<Arc<Bound>>, Fault> {
        let compute = || compute().map(|bound| bound.map(Arc::new));
        self.bounds.get(key, compute)
    }

    /// The profile of a run without other programs. `key` is the text of everything that the profile depends on.
    ///
    /// # Errors
    ///
    /// The errors of `take`.
    pub fn profiled(
        &self,
        key: String,
        take: impl FnOnce() -> Result<Arc<RunProfile>, Fault>,
    ) -> Result<Arc<RunProfile>, Fault> {
        self.profiled.get(key, take)
    }

    /// The model of a program. `key` is the text of everything that the model depends on.
    ///
    /// # Errors
    ///
    /// The errors of `train`.
    pub fn trained(
        &self,
        key: String,
        train: impl FnOnce() -> Result<Arc<Model>, Fault>,
    ) -> Result<Arc<Model>, Fault> {
        self.trained.get(key, train)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_thing_is_made_once_though_many_ask() {
        let memo = Memo::new(8);
        let made = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let thing = memo.get("a".to_owned(), || {
                        std::thread::yield_now();
                        made.fetch_add(1, Ordering::Relaxed)
                    });
                    assert_eq!(thing, 0);
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_was_not_used_lately_makes_room() {
        let memo = Memo::new(2);
        let made = AtomicU32::new(0);
        let get = |key: &str| {
            let make = || made.fetch_add(1, Ordering::Relaxed);
            memo.get(key.to_owned(), make)
        };
        assert_eq!((get("a"), get("b"), get("a")), (0, 1, 0));
        // `b` goes, not `a`.
        assert_eq!((get("c"), get("a"), get("b")), (2, 0, 3));
        assert_eq!(memo.kept.lock().unwrap().things.len(), 2);
    }

    /// Drives are told apart by their contents, not by their names.
    #[test]
    fn drives_are_known_by_their_contents() {
        let stock = Stock::default();
        let (drive, _) = stock.profile("atlas10k").unwrap();
        let slower = drive
            .with(|spec| spec.overhead.per_command += headtime_units::Nanos::from_micros(500))
            .unwrap();
        let curve = |drive: &Profile| {
            let known = stock.known(Beliefs {
                drive: Some(drive.clone()),
                curve: None,
            });
            known.curve().expect("it is learned")
        };
        assert!(Arc::ptr_eq(&curve(&drive), &curve(&drive)));
        assert_ne!(curve(&drive), curve(&slower));
        let probed = |drive| {
            let learned = stock.believed(Source::Probed(drive)).unwrap();
            learned.overhead.read_miss_after_read
        };
        assert!(probed(&slower) > probed(&drive));
        let fault = stock.profile("atlas10").unwrap_err();
        assert!(
            fault.to_string().contains("did you mean `atlas10k`"),
            "{fault}"
        );
    }
}

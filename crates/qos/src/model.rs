//! The trained tree of a program on a site.

use crate::cart::{CartOptions, Errors, Node, Sample, TooFew, Tree, grow};
use crate::features::{Feature, Sums};
use crate::profile::{Profile, Row};
use crate::setting::{Differs, Service, Setting};
use crate::text::{Lines, TextError, finite, first_line, seal};
use headtime_units::Nanos;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thiserror::Error;

/// Kind and version of the text.
const KIND: &str = "tree";
const VERSION: u32 = 1;

/// A tree that predicts the throughput of a server for a program on a site, as in the profiling run.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    setting: Setting,
    enough: u64,
    tree: Tree,
}

/// Options of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainOptions {
    /// Options of the tree.
    pub cart: CartOptions,
    /// Number of requests that are used of each profile of the program: a randomly drawn segment. `None` uses all. The paper
    /// uses 10,000.
    pub segment: Option<u64>,
    /// Number of requests of a server whose means make one sample, 1 or more; default 8. Epochs with fewer requests count
    /// together. With 1, each epoch counts by itself, as in the paper. One or two requests describe a program badly, and a
    /// program with little service has many epochs with so few requests.
    pub enough: u64,
}

impl Default for TrainOptions {
    fn default() -> TrainOptions {
        TrainOptions {
            cart: CartOptions::default(),
            segment: None,
            enough: 8,
        }
    }
}

/// A model, and its errors in cross-validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The model.
    pub model: Model,
    /// Errors of a server in an epoch of the program.
    pub servers: Errors,
    /// Errors of the sum over the servers in an epoch of the program.
    pub sums: Errors,
    /// Errors of a server in an epoch of the synthetic workload.
    pub synthetic: Errors,
    /// Number of epochs of servers without service time, which were left out.
    pub untimed: u64,
    /// False if the tree does not achieve the threshold of [`Stop::Error`](crate::Stop::Error).
    pub is_met: bool,
}

/// Reason why no model can be trained.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// There is no profile.
    #[error("no profile of a program; give one or more")]
    NoProfile,
    /// A profile differs from the first profile.
    #[error("profile {nth}: {differs}, as in the first profile")]
    Differs {
        /// Number of the profile, counted from 1.
        nth: usize,
        /// The difference.
        differs: Differs,
    },
    /// The synthetic profile differs from the first profile.
    #[error("synthetic profile: {0}, as in the first profile")]
    Synthetic(Differs),
    /// There are too few epochs.
    #[error("program `{program}`: {few}")]
    TooFew {
        /// Name of the program.
        program: String,
        /// The number of epochs.
        few: TooFew,
    },
}

impl Model {
    /// Trains a model with profiles of one program and, for localities that the program has not shown, of a synthetic workload
    /// ([`Training`](crate::Training)) on the same site.
    ///
    /// # Errors
    ///
    /// If the profiles differ in site, program, share, epoch, service or servers, or have fewer than two epochs.
    pub fn train(
        profiles: &[Profile],
        synthetic: Option<&Profile>,
        options: &TrainOptions,
    ) -> Result<Trained, TrainError> {
        let setting = &profiles.first().ok_or(TrainError::NoProfile)?.setting;
        for (nth, profile) in (1..).zip(profiles) {
            let of = &profile.setting;
            of.expect(&setting.site, &setting.program)
                .and_then(|()| of.expect_like(setting))
                .map_err(|differs| TrainError::Differs { nth, differs })?;
        }
        let parts = profiles.iter().map(|profile| match options.segment {
            None => &profile.rows[..],
            Some(requests) => profile.segment(requests, 0),
        });
        let mut set = Set {
            enough: options.enough.max(1),
            ..Set::default()
        };
        parts.for_each(|rows| set.add(rows, setting.service, true));
        let of_program = set.samples.len();
        if let Some(synthetic) = synthetic {
            (synthetic.setting.expect_like(setting)).map_err(TrainError::Synthetic)?;
            set.add(&synthetic.rows, setting.service, false);
        }
        let samples = &set.samples;
        let grown = grow(samples, &options.cart).map_err(|few| TrainError::TooFew {
            program: setting.program.clone(),
            few,
        })?;
        let pairs = || {
            let rates = samples.iter().map(|sample| sample.rate);
            grown.held_out.iter().copied().zip(rates)
        };
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for (sample, (predicted, actual)) in samples.iter().zip(pairs()).take(of_program) {
            let sum = sums.entry(sample.group).or_default();
            *sum = (sum.0 + predicted, sum.1 + actual);
        }
        Ok(Trained {
            model: Model {
                setting: setting.clone(),
                enough: options.enough,
                tree: grown.tree.clone(),
            },
            servers: Errors::of(pairs().take(of_program)),
            sums: Errors::of(sums.into_values()),
            synthetic: Errors::of(pairs().skip(of_program)),
            untimed: set.untimed,
            is_met: grown.is_met,
        })
    }

    /// Circumstances of the profiling run.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// Length of an epoch.
    pub fn epoch(&self) -> Nanos {
        self.setting.epoch
    }

    /// Number of requests of a server whose means make one sample: see [`TrainOptions::enough`].
    pub fn enough(&self) -> u64 {
        self.enough
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the errors of the model in another run: for a server in an epoch, and for the sum over the servers. Each epoch
    /// counts by itself.
    ///
    /// # Errors
    ///
    /// If the run was on another site, of another program, or with another share, epoch, service or number of servers.
    pub fn errors(&self, run: &Profile) -> Result<[Errors; 2], Differs> {
        let (of, with) = (&run.setting, &self.setting);
        of.expect(&with.site, &with.program)?;
        of.expect_like(with)?;
        let pair = |row: &Row| Some((self.tree.predict(&row.sums.vector()), row.rate()?));
        let epochs = run.rows.chunk_by(|a, b| a.epoch == b.epoch);
        let sum = |rows: &[Row]| {
            let pairs = rows.iter().filter_map(pair);
            pairs.reduce(|(a, b), (predicted, actual)| (a + predicted, b + actual))
        };
        let sums = Errors::of(epochs.filter_map(sum));
        Ok([Errors::of(run.rows.iter().filter_map(pair)), sums])
    }

    /// Writes the model as text.
    pub fn to_text(&self) -> String {
        let mut text = first_line(KIND, VERSION);
        self.setting.write(&mut text);
        writeln!(text, "enough = {}", self.enough).expect("a string takes all text");
        for node in self.tree.nodes() {
            writeln!(text, "{node}").expect("a string takes all text");
        }
        seal(&mut text);
        text
    }

    /// Reads a text that [`Model::to_text`] wrote.
    ///
    /// # Errors
    ///
    /// If the text is not a tree, of another version, cut off or damaged.
    pub fn from_text(text: &str) -> Result<Model, TextError> {
        let mut lines = Lines::open(text, KIND, VERSION)?;
        let setting = Setting::read(&mut lines)?;
        let line = lines.next()?;
        let enough = line
            .strip_prefix("enough = ")
            .and_then(|number| number.parse().ok());
        let enough = enough.filter(|enough| *enough > 0);
        let enough = enough.ok_or_else(|| {
            lines.error(format!(
                "`{line}`; allowed is `enough = NUMBER` with a number from 1 on"
            ))
        })?;
        let mut nodes = Vec::new();
        let last = loop {
            let line = lines.next()?;
            if line.starts_with("end") {
                break line;
            }
            let node = node(line).ok_or_else(|| {
                lines.error(format!(
                    "`{line}` is no node; allowed are `split FEATURE THRESHOLD SAMPLES` and `leaf RATE SAMPLES`, with rates above 0"
                ))
            })?;
            nodes.push(node);
        };
        let count = nodes.len();
        let tree = Tree::of(nodes).map_err(|read| {
            lines.error(format!(
                "the tree is damaged: it has {count} nodes, of which {read} are a tree or a part of a tree"
            ))
        })?;
        lines.finish(last)?;
        Ok(Model {
            setting,
            enough,
            tree,
        })
    }
}

/// Reads a node.
fn node(line: &str) -> Option<Node> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let feature = match kind {
        "split" => {
            let name = words.next()?;
            let mut all = Feature::ALL.into_iter();
            Some(all.find(|feature| feature.name() == name)?)
        }
        "leaf" => None,
        _ => return None,
    };
    let number = words.next().and_then(finite)?;
    let samples = words.next()?.parse().ok()?;
    if words.next().is_some() {
        return None;
    }
    match feature {
        Some(feature) => Some(Node::Split {
            feature,
            threshold: number,
            samples,
        }),
        None => (number > 0.0).then_some(Node::Leaf {
            rate: number,
            samples,
        }),
    }
}

/// Samples to train with.
#[derive(Default)]
struct Set {
    /// Number of requests that are enough for a sample.
    enough: u64,
    samples: Vec<Sample>,
    /// Number of groups so far.
    groups: u64,
    untimed: u64,
}

/// Epochs of a server that count together.
#[derive(Clone, Copy, Default)]
struct Together {
    sums: Sums,
    busy: Nanos,
    /// Number of epochs since the last request.
    quiet: u32,
}

/// Number of epochs without a request after which earlier requests of a server no longer count together with later ones.
const QUIET_EPOCHS: u32 = 10;

impl Set {
    /// Adds rows of a profile. Epochs of a server count together until they have enough requests, with the program's
    /// time in all of these epochs. All samples that end in one epoch form a group.
    fn add(&mut self, rows: &[Row], service: Service, is_judged: bool) {
        let servers = rows.iter().map(|row| usize::from(row.server) + 1).max();
        let mut all = vec![Together::default(); servers.unwrap_or(0)];
        for epoch in rows.chunk_by(|a, b| a.epoch == b.epoch) {
            let busy = epoch.first().map_or(Nanos::ZERO, |row| row.busy);
            for (server, together) in all.iter_mut().enumerate() {
                together.quiet += 1;
                if together.quiet > QUIET_EPOCHS || self.enough == 1 {
                    *together = Together::default();
                }
                let is_here = epoch.iter().any(|row| usize::from(row.server) == server);
                if service == Service::Program && !is_here {
                    together.busy += busy;
                }
            }
            for row in epoch {
                let together = &mut all[usize::from(row.server)];
                together.sums += row.sums;
                together.busy += row.busy;
                together.quiet = 0;
                if together.sums.requests >= self.enough {
                    let Together { sums, busy, .. } = std::mem::take(together);
                    self.sample(&sums, busy, is_judged);
                }
            }
            self.groups += 1;
        }
    }

    fn sample(&mut self, sums: &Sums, busy: Nanos, is_judged: bool) {
        let seconds = busy.as_secs_f64();
        if busy.is_zero() {
            self.untimed += 1;
            return;
        }
        self.samples.push(Sample {
            vector: sums.vector(),
            rate: sums.bytes as f64 / seconds,
            seconds,
            is_judged,
            group: self.groups,
        });
    }
}

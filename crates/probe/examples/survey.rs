//! Learns drives and prints a row for each: the keys found, missed and wrong.
//!
//! ```text
//! survey NAME|FROM..TO ...       NAME: a shipped profile; FROM..TO: seeds of drives that could have been
//! survey NAME*5                  five units of a drive, whose speed, seeks and processing vary
//! survey NAME+9                  with nine sectors whose data is elsewhere; NAME+9*5 both
//! survey NAME+9!                 the same, and all sectors are read to find them; NAME+9!*5
//! survey NAME+9!60               the same for at most 60 minutes of the drive's
//! ```

use headtime_disk::profile::{Order, Profile, by_name};
use headtime_lab::accuracy::{compare, remapped};
use headtime_probe::extract::{Extraction, Stage};
use headtime_probe::{Modelled, Probe};
use headtime_units::Nanos;

/// Time of the drive's after which a drive is given up.
const BUDGET: Nanos = Nanos::from_millis(180 * 60_000);
/// Time limit if all sectors are read.
const LONG: Nanos = Nanos::from_secs(120 * 3_600);

fn main() {
    let names = std::env::args()
        .skip(1)
        .flat_map(|arg| match arg.split_once("..") {
            Some((from, to)) => {
                let seed = |text: &str| text.parse::<u64>().expect("a seed");
                (seed(from)..seed(to))
                    .map(|seed| format!("plausible-{seed}"))
                    .collect()
            }
            None => vec![arg],
        });
    for name in names {
        let (name, units) = match name.split_once('*') {
            Some((name, units)) => (name, Some(units.parse::<u64>().expect("a number"))),
            None => (name.as_str(), None),
        };
        let (name, all) = match name.split_once('!') {
            Some((name, "")) => (name, Some(LONG)),
            Some((name, most)) => {
                let most = most.parse::<u64>().expect("minutes");
                (name, Some(Nanos::from_secs(60 * most)))
            }
            None => (name, None),
        };
        let (plain, moved) = match name.split_once('+') {
            Some((name, moved)) => (name, moved.parse::<usize>().expect("a number")),
            None => (name, 0),
        };
        let truth = by_name(plain).expect("a profile");
        let truth = remapped(&truth, moved, 11);
        let Some(units) = units else {
            println!("{name:22} {:38} {}", what(&truth), row(&truth, 7, all));
            continue;
        };
        let truth = varied(&truth);
        for seed in 1..=units {
            println!("{name:22} {:38} {}", what(&truth), row(&truth, seed, all));
        }
    }
}

/// A drive whose units and commands vary as on real drives.
fn varied(truth: &Profile) -> Profile {
    let varied = |spec: &mut headtime_disk::Spec| {
        spec.noise.speed_ppm = 1_000;
        spec.noise.seek_sd = Nanos::from_micros(20);
        spec.noise.seek_sd_relative = 0.01;
        spec.noise.overhead_sd = Nanos::from_micros(30);
    };
    truth.with(varied).expect("a profile")
}

/// Short description of a drive.
fn what(truth: &Profile) -> String {
    let zones = &truth.layout.zones;
    let is = |yes: bool, word: &'static str| if yes { word } else { "" };
    format!(
        "{}/{:?}/{}h/{}z{}{}",
        order(truth.layout.order),
        truth.layout.sparing,
        truth.geometry.heads,
        zones.len(),
        is(zones.iter().any(|zone| !zone.by_head.is_empty()), "/byhead"),
        is(
            zones.iter().any(|zone| zone.tracks_per_surface.is_some()),
            "/byzone"
        ),
    )
}

fn order(order: Order) -> String {
    match order {
        Order::CylinderFirst => "cyl".to_owned(),
        Order::Serpentine => "serp".to_owned(),
        Order::SerpentineThroughout => "serpt".to_owned(),
        Order::SurfaceSerpentine { tracks } => format!("surf{tracks}"),
    }
}

fn row(truth: &Profile, seed: u64, all: Option<Nanos>) -> String {
    let mut probe = Modelled::new(truth, seed);
    let mut extraction = Extraction::new(&probe, seed);
    let mut budget = BUDGET;
    if let Some(most) = all {
        extraction = extraction.with_remaps();
        budget = most;
    }
    let result = extraction.run(&mut probe, budget);
    let minutes = extraction.spent.as_millis_f64() / 60_000.0;
    let upto = extraction.walked.upto as f64 / probe.capacity().get() as f64;
    if result.is_err() || extraction.profile().is_err() || extraction.stage() < Stage::Remaps {
        let reason = match result {
            Err(error) => error.to_string(),
            Ok(()) => format!("{:?} after the budget", extraction.stage()),
        };
        return format!("FAIL at {upto:.3} after {minutes:.1} min: {reason}");
    }
    let found = compare(truth, &extraction, &probe);
    let held = found.held;
    let part = |count: u64| 100.0 * count as f64 / held.reads as f64;
    let bad = found.missed();
    format!(
        "{:5.1} min {:4.1} ppm len {:5} ang {:5} skew {:7.2} bord {}/{}({}), {} where none is, heads {}/{} cyl {}/{} order {}/{} group {} remap {}/{}, {} placed, {} wrong, {} unclear{} seeks {:6.1} held {:.1} {:.1} {:.1} late {:.1} early {:.1} hit {:.1} | {}",
        minutes,
        found.turn_ppm,
        found.lengths,
        found.angles,
        found.skew,
        found.borders.0,
        found.borders.1,
        extraction.profile().unwrap().layout.zone_count(),
        found.no_borders,
        found.heads.0,
        found.heads.1,
        found.cylinders.0,
        found.cylinders.1,
        order(found.order.0),
        order(found.order.1),
        found.grouped,
        found.remaps.0,
        found.remaps.1,
        found.placed,
        found.not_remapped,
        extraction.remaps.unclear,
        combed(&extraction),
        found.seeks,
        part(held.within[0]),
        part(held.within[1]),
        part(held.within[2]),
        part(held.late),
        part(held.early),
        part(held.hits),
        if bad.is_empty() {
            "all".to_owned()
        } else {
            format!("not {}", bad.join(" "))
        },
    )
}

/// Share of the disk that was read for remapped sectors, and the time of this.
fn combed(extraction: &Extraction) -> String {
    let Some(combing) = &extraction.remaps.combing else {
        return String::new();
    };
    let minutes = |nanos: Nanos| nanos.as_millis_f64() / 60_000.0;
    format!(
        ", {:.0} % read in {:.1} min of {:.1}",
        100.0 * combing.share(extraction.capacity().get()),
        minutes(combing.spent),
        minutes(combing.takes.unwrap_or_default()),
    )
}

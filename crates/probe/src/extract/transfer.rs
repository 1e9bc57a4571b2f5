//! How data come over the bus: how fast, from when on, and what an answer from the buffer costs.

use super::bench::Bench;
use super::error::ExtractError;
use super::turns::{median, part};
use headtime_disk::{Layout, Profile};
use headtime_units::{Extent, Lba};
use serde::{Deserialize, Serialize};

/// What reads of several sizes show. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Each sector.
    pub sector: f64,
    /// An answer from the buffer, without its data; 0 if nothing ever came from there.
    pub hit: f64,
    /// The part of a read that has passed when the drive asks for the bus; 0 for its first sector.
    #[serde(default)]
    pub water: f64,
    /// From then until the bus is there.
    #[serde(default)]
    pub reconnect: f64,
}

/// Sectors of the long reads from the buffer.
pub(super) const MANY: u64 = 17;
/// Reads of each kind that have to come from there.
pub(super) const LEAST: usize = 30;
/// Sectors of the reads from the medium, those of which the last ones pass within a turn.
const SIZES: [u64; 6] = [2, 3, 5, 8, 16, 32];
/// Reads of each size, in each of the first and the last zone.
const READS: usize = 9;
/// What reads of several sizes may be off without another reason, in nanoseconds, beside a part of a sector.
const STEADY: f64 = 15e3;
/// Parts of a read that are tried, and steps of the time until the bus is there.
const PARTS: u32 = 16;
const STEP: f64 = 5e3;
const STEPS: u32 = 80;

impl Transfer {
    /// What a profile says of it.
    pub(super) fn of(profile: &Profile) -> Transfer {
        let (spec, bus) = (&profile.overhead, &profile.bus);
        let reconnect = spec.first_reselect + spec.data_preparation + bus.arbitration;
        Transfer {
            sector: bus.sector(true).as_nanos() as f64,
            hit: (spec.per_command + spec.read_hit_after_read).as_nanos() as f64,
            water: profile.cache.read_high_water,
            reconnect: reconnect.as_nanos() as f64,
        }
    }

    /// Sectors of a read of `count` that have passed when the drive asks for the bus.
    pub(super) fn waits_for(self, count: u64) -> u64 {
        ((count as f64 * self.water) as u64).max(1)
    }

    /// How long after the answer of its first sector alone a read of `count` is answered, if one passes every `slot`.
    fn later(self, count: u64, slot: f64) -> f64 {
        let sent = (self.waits_for(count) - 1) as f64 * slot + count as f64 * self.sector;
        let passed = (count - 1) as f64 * slot + self.sector - self.reconnect;
        sent.max(passed) - self.sector
    }
}

/// Reads that are in the buffer, of one sector and of several.
pub(super) fn measure(bench: &mut Bench<'_>, hit_below: f64) -> Result<Transfer, ExtractError> {
    let mut hits = |count: u64| -> Result<Option<f64>, ExtractError> {
        let mut times = Vec::new();
        for _ in 0..60 {
            let lba = bench
                .random
                .up_to(bench.capacity().saturating_sub(MANY + 1));
            bench.read(lba, count)?;
            let again = bench.read(lba, count)?;
            let time = (again.at - again.sent).as_nanos() as f64;
            // More data may take longer than what a hit may.
            if time < hit_below + count as f64 * 250e3 {
                times.push(time);
            }
        }
        Ok(if times.len() < LEAST {
            None
        } else {
            median(&mut times)
        })
    };
    let (Some(one), Some(many)) = (hits(1)?, hits(MANY)?) else {
        return Ok(Transfer::default());
    };
    let sector = ((many - one) / (MANY - 1) as f64).max(0.0);
    Ok(Transfer {
        sector,
        hit: (one - sector).max(0.0),
        ..Transfer::default()
    })
}

/// Reads of one size in one zone.
struct OfSize {
    count: u64,
    slot: f64,
    /// How long after its first sector alone such a read is answered.
    later: f64,
}

/// From when on the bus takes what has passed.
///
/// `draft` has the angles at which single sectors are answered. Where a read of several is answered later than the last of
/// them has passed and gone over the bus, the drive has asked for the bus late; sooner, and what it costs to get it is
/// hidden behind the sectors that still pass (DiskSim's water mark and reselection).
pub(super) fn begins(
    bench: &mut Bench<'_>,
    transfer: Transfer,
    draft: &Profile,
) -> Result<Transfer, ExtractError> {
    let layout = Layout::new(draft);
    let mut seen = Vec::new();
    let zones = || {
        let extents = layout.zones().map(|zone| zone.extent);
        extents.filter(|extent| extent.len.get() > 0)
    };
    for zone in zones().next().into_iter().chain(zones().last()) {
        for count in SIZES {
            seen.extend(sized(bench, transfer, &layout, zone, count)?);
        }
    }
    let worst = |transfer: Transfer| {
        let off = |of: &OfSize| (transfer.later(of.count, of.slot) - of.later).abs();
        seen.iter().map(off).fold(0.0, f64::max)
    };
    let slot = seen.iter().map(|of| of.slot).fold(f64::INFINITY, f64::min);
    let enough = f64::max(STEADY, 0.1 * slot);
    if seen.is_empty() || worst(transfer) <= enough {
        return Ok(transfer);
    }
    // What does not show is zero, so that the time until the bus is there comes last.
    for step in 0..=STEPS {
        let tried = (0..=PARTS).map(|water| Transfer {
            water: f64::from(water) / f64::from(PARTS),
            reconnect: f64::from(step) * STEP,
            ..transfer
        });
        let best = tried.min_by(|one, other| f64::total_cmp(&worst(*one), &worst(*other)));
        if let Some(best) = best.filter(|best| worst(*best) <= enough) {
            return Ok(best);
        }
    }
    Ok(transfer)
}

/// Reads of one size; `None` if no track of the zone is long enough, or they take now this, now that.
fn sized(
    bench: &mut Bench<'_>,
    transfer: Transfer,
    layout: &Layout,
    zone: Extent,
    count: u64,
) -> Result<Option<OfSize>, ExtractError> {
    let turn = bench.turn();
    let mut times = Vec::new();
    let mut slot = 0.0;
    for _ in 0..READS {
        bench.keep_phase()?;
        let lba = zone.start.get() + bench.random.up_to(zone.len.get() - 1);
        let run = layout.run(Lba::new(lba));
        slot = turn / f64::from(run.sectors_per_track);
        let all = count as f64 * (slot + transfer.sector);
        // A head that comes in the midst of the sectors may take those first.
        if u64::from(run.len) < count || all > 0.5 * turn {
            continue;
        }
        let one = layout.locate(Lba::new(lba)).angle.to_bits();
        let one = f64::from(one) / 4_294_967_296.0 + (slot + transfer.sector) / turn;
        bench.linger();
        let answer = bench.read(lba, count)?;
        if !bench.is_hit(&answer) {
            times.push(part(bench.angle_at(answer.at) - one + 0.05) - 0.05);
        }
    }
    let seen = times.len();
    let Some(later) = median(&mut times) else {
        return Ok(None);
    };
    let near = times
        .iter()
        .filter(|time| (**time - later).abs() * turn < STEADY);
    let agree = seen * 3 >= READS * 2 && near.count() * 3 >= seen * 2;
    Ok(agree.then_some(OfSize {
        count,
        slot,
        later: later * turn,
    }))
}

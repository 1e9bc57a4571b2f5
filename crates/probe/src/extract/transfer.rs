//! Transfer over the bus: speed, start, and the cost of an answer from the buffer.

use super::bench::Bench;
use super::error::ExtractError;
use super::turns::{median, part};
use headtime_disk::{Layout, Profile};
use headtime_units::{Extent, Lba};
use serde::{Deserialize, Serialize};

/// Results of reads of several sizes. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Time per sector.
    pub sector: f64,
    /// Time of an answer from the buffer, without its data; 0 if the buffer never answers.
    pub hit: f64,
    /// Share of a read that has passed when the drive requests the bus; 0 if the drive requests the bus with the first sector.
    #[serde(default)]
    pub water: f64,
    /// Time from this request until the bus is available.
    #[serde(default)]
    pub reconnect: f64,
}

/// Sectors of the long reads from the buffer.
pub(super) const LONG_READ_SECTORS: u64 = 17;
/// Fewest reads of each kind that must come from the buffer.
pub(super) const BUFFER_READS_MIN: usize = 30;
/// Sectors of the reads from the medium. Reads that would take more than half a turn are skipped.
const SIZES: [u64; 6] = [2, 3, 5, 8, 16, 32];
/// Reads of each size, both in the first zone and in the last zone.
const READS_PER_SIZE: usize = 9;
/// Deviation of reads of several sizes, in nanoseconds, that needs no explanation. A tenth of a sector is allowed as well.
const EXPLAINED_NS: f64 = 15e3;
/// Number of shares to try, and steps of the time until the bus is available.
const SHARES_TRIED: u32 = 16;
const BUS_STEP_NS: f64 = 5e3;
const BUS_STEPS: u32 = 80;

impl Transfer {
    /// Bus times of a profile.
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

    /// Number of sectors of a read of `count` that have passed when the drive requests the bus.
    pub(super) fn waits_for(self, count: u64) -> u64 {
        ((count as f64 * self.water) as u64).max(1)
    }

    /// Time from the answer to the first sector alone to the answer to a read of `count`, with a sector every `slot` nanoseconds.
    fn later(self, count: u64, slot: f64) -> f64 {
        let sent = (self.waits_for(count) - 1) as f64 * slot + count as f64 * self.sector;
        let passed = (count - 1) as f64 * slot + self.sector - self.reconnect;
        sent.max(passed) - self.sector
    }
}

/// Times reads of one sector and of several sectors that the buffer holds.
pub(super) fn measure(bench: &mut Bench<'_>, hit_below: f64) -> Result<Transfer, ExtractError> {
    let mut hits = |count: u64| -> Result<Option<f64>, ExtractError> {
        let mut times = Vec::new();
        for _ in 0..60 {
            let lba = bench
                .random
                .up_to(bench.capacity().saturating_sub(LONG_READ_SECTORS + 1));
            bench.read(lba, count)?;
            let again = bench.read(lba, count)?;
            let time = (again.at - again.sent).as_nanos() as f64;
            // More data may take longer than the limit for a hit.
            if time < hit_below + count as f64 * 250e3 {
                times.push(time);
            }
        }
        Ok(if times.len() < BUFFER_READS_MIN {
            None
        } else {
            median(&mut times)
        })
    };
    let (Some(one), Some(many)) = (hits(1)?, hits(LONG_READ_SECTORS)?) else {
        return Ok(Transfer::default());
    };
    let sector = ((many - one) / (LONG_READ_SECTORS - 1) as f64).max(0.0);
    Ok(Transfer {
        sector,
        hit: (one - sector).max(0.0),
        ..Transfer::default()
    })
}

/// Result for reads of one size in a zone.
struct OfSize {
    count: u64,
    slot: f64,
    /// Time from the answer to the first sector alone to the answer to the read.
    later: f64,
}

/// Finds out when the drive requests the bus.
///
/// `draft` gives the angles at which single sectors are answered. A read of several sectors may be answered later than its last sector has
/// passed and crossed the bus. Then the drive has requested the bus late. If the answer comes sooner, the cost of getting the bus is hidden
/// behind the sectors that still pass (DiskSim's water mark and reselection).
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
    let enough = f64::max(EXPLAINED_NS, 0.1 * slot);
    if seen.is_empty() || worst(transfer) <= enough {
        return Ok(transfer);
    }
    // Parameters that do not show are zero. The time until the bus is available is therefore the outer loop.
    for step in 0..=BUS_STEPS {
        let tried = (0..=SHARES_TRIED).map(|water| Transfer {
            water: f64::from(water) / f64::from(SHARES_TRIED),
            reconnect: f64::from(step) * BUS_STEP_NS,
            ..transfer
        });
        let best = tried.min_by(|one, other| f64::total_cmp(&worst(*one), &worst(*other)));
        if let Some(best) = best.filter(|best| worst(*best) <= enough) {
            return Ok(best);
        }
    }
    Ok(transfer)
}

/// Reads of one size. `None` if no track of the zone is long enough, or if the times scatter.
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
    for _ in 0..READS_PER_SIZE {
        bench.keep_phase()?;
        let lba = zone.start.get() + bench.random.up_to(zone.len.get() - 1);
        let run = layout.run(Lba::new(lba));
        slot = turn / f64::from(run.sectors_per_track);
        let all = count as f64 * (slot + transfer.sector);
        // A head that arrives in the middle of the sectors may read those first.
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
        .filter(|time| (**time - later).abs() * turn < EXPLAINED_NS);
    let agree = seen * 3 >= READS_PER_SIZE * 2 && near.count() * 3 >= seen * 2;
    Ok(agree.then_some(OfSize {
        count,
        slot,
        later: later * turn,
    }))
}

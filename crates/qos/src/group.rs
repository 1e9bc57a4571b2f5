//! Choice of the programs with windows of their own: U-Shape (SC'11), sections 3.2.1 and 4.4.
//!
//! If the seek to the data of others costs more than the wait for a program's next request, the program gets its own
//! window. This wait is the *reuse distance*. Programs with longer waits share a window, so that the disks stay busy.

use headtime_units::{Lba, Nanos, Time};

/// Locality of a program in a period.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locality {
    servers: Vec<ServerLocality>,
    /// Sum and number of the reuse distances in the program's own windows.
    gaps: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct ServerLocality {
    outstanding: u64,
    /// Time at which the server last finished a request of the program.
    done: Time,
    /// Start of the last request. `None` before the first.
    at: Option<Lba>,
}

impl Locality {
    fn server(&mut self, server: u16) -> &mut ServerLocality {
        let index = usize::from(server);
        if self.servers.len() <= index {
            self.servers.resize(index + 1, ServerLocality::default());
        }
        &mut self.servers[index]
    }

    /// Notes a request. A reuse distance counts only within the program's window, which has start `from` and length `span`. A
    /// longer distance would include time in which other programs were served.
    pub fn asked(&mut self, now: Time, (from, span): (Time, Nanos), server: u16, at: Lba) {
        let of = self.server(server);
        let counts = of.outstanding == 0 && of.done >= from && now < from + span;
        let gap = counts.then(|| now.saturating_since(of.done));
        of.outstanding += 1;
        of.at = Some(at);
        if let Some(gap) = gap {
            self.gaps.0 = self.gaps.0.saturating_add(gap.as_nanos());
            self.gaps.1 += 1;
        }
    }

    /// Notes that a server has finished a request.
    pub fn done(&mut self, now: Time, server: u16) {
        let of = self.server(server);
        of.outstanding = of.outstanding.saturating_sub(1);
        of.done = now;
    }

    /// Returns the mean reuse distance since the last call, or `None` if there was none.
    pub fn take_reuse(&mut self) -> Option<Nanos> {
        let (sum, count) = std::mem::take(&mut self.gaps);
        (count > 0).then(|| Nanos::from_nanos(sum / count))
    }

    /// Mean distance in sectors from the data of another program, over the servers that both use.
    pub fn distance(&self, other: &Locality) -> Option<u64> {
        let both = self.servers.iter().zip(&other.servers);
        let distances = both.filter_map(|(one, other)| Some(one.at?.distance(other.at?).get()));
        let (sum, count) = distances.fold((0_u128, 0_u128), |(sum, count), distance| {
            (sum + u128::from(distance), count + 1)
        });
        (count > 0).then(|| u64::try_from(sum / count).unwrap_or(u64::MAX))
    }
}

/// Number of consecutive periods that must agree before a program moves to its own window or to the shared window.
const AGREEING_PERIODS: u8 = 2;

/// Number of periods for which a program keeps its own window after it was short in the shared window.
const KEPT_PERIODS: u8 = 10;

/// Counts of the periods in which a program had requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouped {
    /// Periods in which seeks and waits were compared.
    pub compared: u32,
    /// Periods in which seeks to other programs' data took longer than waits for the program's next request.
    pub seeks_longer: u32,
    /// Periods with bytes served.
    pub served: u32,
    /// Periods with bytes served in the shared window.
    pub shared: u32,
}

/// Votes of the last periods.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Votes {
    dedicate: bool,
    agreeing: u8,
    /// Number of periods for which votes do not count.
    keeps: u8,
}

impl Votes {
    /// Votes after a move. `short` is true if the program was short in the shared window.
    pub fn after(short: bool) -> Votes {
        Votes {
            keeps: if short { KEPT_PERIODS } else { 0 },
            ..Votes::default()
        }
    }

    /// Takes the vote of a period. Returns the vote if enough consecutive periods agree.
    pub fn vote(&mut self, dedicate: bool) -> Option<bool> {
        self.agreeing = match self.dedicate == dedicate {
            true => self.agreeing.saturating_add(1),
            false => 1,
        };
        self.dedicate = dedicate;
        if self.keeps > 0 {
            self.keeps -= 1;
            return None;
        }
        (self.agreeing >= AGREEING_PERIODS).then_some(dedicate)
    }
}

//! The service of one choice in a span of time.

/// Least completions of a turn, unless the turn lasts [`TURN_LENGTHS_MAX`] times its length.
const COMPLETIONS_MIN: u32 = 16;
/// Longest turn, in turns.
pub const TURN_LENGTHS_MAX: u64 = 4;
/// Throughput of the choice in force, in parts.
pub const THROUGHPUT_IN_FORCE: u64 = 1 << 10;
/// Most that a trial can show, so that later trials can still correct it.
pub const THROUGHPUT_MAX: u64 = 8 * THROUGHPUT_IN_FORCE;

/// Sectors and completions of one kind of requests, and the time in which they were served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub sectors: u64,
    pub nanos: u64,
    completions: u32,
}

impl Span {
    pub fn add(&mut self, sectors: u64) {
        self.sectors += sectors;
        self.completions += 1;
    }

    /// Sum of this turn and half of the turns before.
    pub fn with(self, before: Option<Span>) -> Span {
        let before = before.unwrap_or_default();
        Span {
            sectors: self.sectors + before.sectors / 2,
            nanos: self.nanos + before.nanos / 2,
            completions: self.completions,
        }
    }

    /// Time in which the other would have served the same sectors, in ns.
    fn needed_by(&self, other: &Span) -> u64 {
        let (sectors, nanos) = (u128::from(self.sectors), u128::from(other.nanos));
        let needed = sectors * nanos / u128::from(other.sectors.max(1));
        u64::try_from(needed).unwrap_or(u64::MAX)
    }

    /// Time that the other would have saved, in ns.
    pub fn lost_to(&self, other: &Span) -> u64 {
        self.nanos.saturating_sub(self.needed_by(other))
    }

    /// Time that this span has saved against the other, in ns.
    pub fn gained_on(&self, other: &Span) -> u64 {
        self.needed_by(other).saturating_sub(self.nanos)
    }

    pub fn is_whole(&self, turn: u64) -> bool {
        let enough = self.completions >= COMPLETIONS_MIN && self.nanos >= turn;
        enough || self.nanos >= turn.saturating_mul(TURN_LENGTHS_MAX)
    }

    /// Sectors of this span and of the other, scaled to the same time.
    pub fn beside(&self, other: &Span) -> (u128, u128) {
        let rate = |span: &Span, time: &Span| u128::from(span.sectors) * u128::from(time.nanos);
        (rate(self, other), rate(other, self))
    }

    /// Throughput of this span as a share of the other's.
    pub fn share_of(&self, other: &Span) -> u64 {
        let (own, others) = self.beside(other);
        let share = own * u128::from(THROUGHPUT_IN_FORCE) / others.max(1);
        u64::try_from(share)
            .unwrap_or(THROUGHPUT_MAX)
            .min(THROUGHPUT_MAX)
    }
}

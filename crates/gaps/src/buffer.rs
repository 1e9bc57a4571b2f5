//! Model of the contents of the drive's buffer.
//!
//! A read that the buffer serves leaves no gap: the head does not wait. A gap read before such a read moves the head away from the place
//! where the drive reads ahead. So no gap read precedes such a read. Lumb, Schindler and Ganger say that hits surprise a scheduler (section
//! 3.1). Their requests are random and rarely hit. Sequential clients lose two thirds of their rate to gap reads before hits.
//!
//! Some drives serve commands in an order of their own. They stay with a stream as long as its next read comes, or choose among commands
//! that come while they read on. A gap read then takes the place of the stream's next read, or is no longer on the way. While predictions
//! fail for this reason, or reads overtake each other, gap reads are suspended. Predictions continue without gap reads, so the end of this
//! behaviour is noticed.
//!
//! From outside, the reads and their times are visible, not the buffer. The model is an upper bound: the drive may have dropped data that
//! the model holds. A gap is then not used.

use headtime_sched::Buffering;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Share of surprises among the last reads that the medium should have served. A surprise ended at another time than predicted, or was
/// overtaken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Surprises {
    /// A bit for each read, set for a surprise. The last read is the lowest bit.
    last: u64,
    seen: u32,
    /// Latest time at which a read that the medium served went to the drive.
    newest: Time,
}

impl Surprises {
    /// Least number of reads on which a verdict is based.
    const READS_MIN: u32 = 16;

    pub fn add(&mut self, surprised: bool) {
        self.last = self.last << 1 | u64::from(surprised);
        self.seen = (self.seen + 1).min(u64::BITS);
    }

    /// Notes a read that is done and went to the drive at `issued`. Returns true if a read that went to the drive later was done before.
    pub fn overtaken(&mut self, issued: Time) -> bool {
        let overtaken = issued < self.newest;
        self.newest = self.newest.max(issued);
        overtaken
    }

    /// Returns true if more than an eighth of the last 64 reads were surprises. With random requests one to three of a hundred are (section
    /// 5.2, Figure 7).
    pub fn are_many(&self) -> bool {
        self.seen >= Self::READS_MIN && self.last.count_ones() * 8 > self.seen
    }
}

/// Clients' reads before which the drive destaged, among the last reads of the medium. If the drive destages before a gap read, or between
/// the gap read and its request, the gap read's arm movement is lost.
///
/// Gap reads are rationed, so that no more than one of [`Destaging::ONE_OF`] clients' reads follows both a destage and a gap read.
///
/// Invariants: `many` is the number of bits in `last`; `credit` is at most [`Destaging::CREDIT_MAX`].
#[derive(Clone, Debug)]
pub(super) struct Destaging {
    /// A bit for each read, set if the drive destaged before the read.
    last: [u64; Destaging::READS_REMEMBERED / 64],
    next: usize,
    /// Reads that were noted, at most [`Destaging::READS_REMEMBERED`].
    seen: usize,
    many: usize,
    /// True if the drive destaged before a gap read whose request is not done.
    before_pick: bool,
    /// Credit for gap reads. Each client's read adds the number of reads looked at. Each gap read takes `many` times [`Destaging::ONE_OF`].
    credit: usize,
}

impl Default for Destaging {
    fn default() -> Destaging {
        Destaging {
            last: [0; Destaging::READS_REMEMBERED / 64],
            next: 0,
            seen: 0,
            many: 0,
            before_pick: false,
            credit: Destaging::CREDIT_MAX,
        }
    }
}

impl Destaging {
    /// Reads of the medium that are remembered.
    const READS_REMEMBERED: usize = 1024;
    /// One of this number of clients' reads may follow both a destage and a gap read. This costs clients a hundredth of their rate.
    const ONE_OF: usize = 50;
    /// If more than one of this number of clients' reads follows a destage, there are no gap reads at all. A gap read makes such a drive
    /// destage at other times, and costs more than its arm movement.
    const DESTAGED_READS_PART: usize = 8;
    /// Most credit: enough for a gap read at any share of destages.
    const CREDIT_MAX: usize = Destaging::READS_REMEMBERED * Destaging::ONE_OF;

    /// Notes a client's read, and whether the drive destaged before the read. `None` if the read does not show that. A destage before the
    /// read's gap read counts for the read.
    pub fn add(&mut self, wrote: Option<bool>) {
        let before_pick = std::mem::take(&mut self.before_pick);
        self.credit = (self.credit + self.looked_at()).min(Self::CREDIT_MAX);
        let Some(wrote) = wrote.map(|wrote| wrote || before_pick) else {
            return;
        };
        let (word, bit) = (self.next / 64, 1 << (self.next % 64));
        self.many -= usize::from(self.last[word] & bit != 0);
        match wrote {
            true => self.last[word] |= bit,
            false => self.last[word] &= !bit,
        }
        self.many += usize::from(wrote);
        self.next = (self.next + 1) % Self::READS_REMEMBERED;
        self.seen = (self.seen + 1).min(Self::READS_REMEMBERED);
    }

    /// Notes that the drive destaged before a gap read.
    pub fn before_pick(&mut self) {
        self.before_pick = true;
    }

    /// Returns the number of reads among which `many` followed a destage. The number is at least 64, since fewer reads say too little.
    fn looked_at(&self) -> usize {
        self.seen.max(64)
    }

    /// Returns the credit that a gap read takes.
    fn price(&self) -> usize {
        self.many * Self::ONE_OF
    }

    /// Returns true if gap reads are rationed.
    pub fn rations(&self) -> bool {
        self.price() > self.looked_at()
    }

    /// Returns true if there is credit for a gap read, and the drive does not destage before more than an eighth of the reads.
    pub fn allows(&self) -> bool {
        let is_often = self.many * Self::DESTAGED_READS_PART > self.looked_at();
        !is_often && self.price() <= self.credit
    }

    /// Takes the credit of a gap read.
    pub fn pay(&mut self) {
        self.credit = self.credit.saturating_sub(self.price());
    }
}

/// A segment of the buffer.
#[derive(Clone, Copy, Debug)]
struct Held {
    from: Lba,
    /// End of the sectors that were requested.
    to: Lba,
    /// End of the last command that the medium served.
    base: Lba,
    /// Time at which that command went to the drive.
    issued: Time,
    /// Time from which the drive may have read ahead from `base`.
    since: Time,
    /// Time until which the drive may have read ahead; [`Time::NEVER`] while it may still do so.
    until: Time,
}

impl Held {
    /// Returns the furthest possible end of the sectors in the segment.
    fn reach(&self, now: Time, of: &Buffering) -> Lba {
        let spent = self.until.min(now).saturating_since(self.since);
        let passed = Sectors::new(spent.as_nanos() / of.sector.as_nanos());
        (self.base + passed).min(self.to + of.ahead).max(self.to)
    }

    /// Returns true if the segment may serve a read, or the drive may be reading ahead to that read.
    fn serves(&self, now: Time, read: Extent, of: &Buffering) -> bool {
        let reach = self.reach(now, of);
        let goes_on = self.until == Time::NEVER && of.ahead > Sectors::ZERO;
        read.start >= self.from && (read.end() <= reach || goes_on && read.start <= reach)
    }
}

/// Possible contents of the drive's buffer, derived from the reads so far.
#[derive(Debug)]
pub(super) struct Buffer {
    of: Option<Buffering>,
    /// Segments in order of their last use; the last was used last.
    held: Vec<Held>,
}

impl Buffer {
    /// Returns an empty buffer. The buffer stays empty if the drive caches nothing, or if its buffering is unknown.
    pub fn new(of: Option<Buffering>) -> Buffer {
        let of = of.filter(|of| of.segments > 0 && of.sector > Nanos::ZERO);
        let room = of.map_or(0, |of| of.segments as usize + 1);
        Buffer {
            of,
            held: Vec::with_capacity(room),
        }
    }

    /// Returns true if a read that went to the drive at `issued` may have been served from the buffer.
    pub fn may_have_served(&self, issued: Time, read: Extent) -> bool {
        let Some(of) = &self.of else { return false };
        self.held.iter().any(|held| held.serves(issued, read, of))
    }

    /// Returns true if a read may be served from the buffer: if the whole read may be there, or the drive may be reading ahead to it.
    /// `behind` is the end of the preceding command if that command is a read.
    pub fn may_serve(&self, now: Time, read: Extent, behind: Option<Lba>) -> bool {
        let Some(of) = &self.of else { return false };
        if of.ahead > Sectors::ZERO
            && behind.is_some_and(|end| {
                read.start >= end
                    && (read.start - end)
                        <= Sectors::new(
                            (of.processing + of.stays).as_nanos() / of.sector.as_nanos(),
                        )
            })
        {
            return true;
        }
        self.may_have_served(now, read)
    }

    /// Returns true if the drive caches the sectors that pass in front of a read.
    pub fn keeps_front(&self) -> bool {
        self.of.is_some_and(|of| of.front)
    }

    /// Takes over the contents of another model of the same drive.
    pub fn become_as(&mut self, other: &Buffer) {
        // `clone_from` reuses the memory.
        self.held.clone_from(&other.held);
    }

    /// Returns the first sector that the drive caches in front of a read. The head waits for `waits` on a track with the addresses `track`,
    /// and a turn takes `turn`.
    pub fn front(&self, read: Lba, waits: Nanos, track: Extent, turn: Nanos) -> Lba {
        if !self.keeps_front() || read < track.start {
            return read;
        }
        let passed = u128::from(track.len.get()) * u128::from(waits.as_nanos());
        let passed = (passed / u128::from(turn.as_nanos().max(1))) as u64;
        read - Sectors::new(passed).min(read - track.start)
    }

    /// Returns true if the buffer has the whole read.
    pub fn has(&self, now: Time, read: Extent) -> bool {
        let Some(of) = &self.of else { return false };
        let has = |held: &Held| read.start >= held.from && read.end() <= held.reach(now, of);
        self.held.iter().any(has)
    }

    /// Notes a read that is done and went to the drive at `issued`. The drive has read from `from` on. `waited` is as for
    /// [`Buffer::moved`].
    pub fn read(
        &mut self,
        now: Time,
        issued: Time,
        read: Extent,
        from: Lba,
        waited: Option<Nanos>,
    ) {
        let Some(of) = self.of else { return };
        let hit = self
            .held
            .iter()
            .position(|held| held.serves(issued, read, &of));
        if let Some(at) = hit {
            let mut held = self.held.remove(at);
            held.to = held.to.max(read.end());
            if held.issued == issued {
                // The read is a part of the same command.
                held.base = held.base.max(read.end());
                held.from = held.from.min(from);
            }
            self.held.push(held);
            return;
        }
        self.moved(issued, waited);
        let [first, more] = of.telling;
        let telling = first + more * read.len.get().saturating_sub(1);
        if self.held.len() == of.segments as usize {
            self.held.remove(0);
        }
        self.held.push(Held {
            from: from.min(read.start),
            to: read.end(),
            base: read.end(),
            issued,
            since: now.saturating_sub(telling).max(issued),
            until: Time::NEVER,
        });
    }

    /// Returns true if the arm reads ahead for as long as the head would wait for the next command.
    pub fn stays(&self) -> bool {
        self.of.is_some_and(|of| of.stays > Nanos::ZERO)
    }

    /// Ends reading ahead because of a command that is done and went to the drive at `issued`. `waited` is the predicted wait of the head
    /// for the command; `None` without a prediction.
    pub fn moved(&mut self, issued: Time, waited: Option<Nanos>) {
        let Some(of) = &self.of else { return };
        let stays = waited.map_or(of.stays, |waited| waited.min(of.stays));
        for held in &mut self.held {
            if held.until == Time::NEVER {
                let free = issued.saturating_add(of.processing).max(held.since);
                held.until = free.saturating_add(stays);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive on which a sector passes in 10 us, so 100 sectors pass in a millisecond.
    const DRIVE: Buffering = Buffering {
        segments: 2,
        ahead: Sectors::new(500),
        sector: Nanos::from_micros(10),
        processing: Nanos::from_millis(1),
        stays: Nanos::ZERO,
        telling: [Nanos::ZERO; 2],
        front: false,
    };

    fn at(ms: u64) -> Time {
        Time::ZERO + Nanos::from_millis(ms)
    }

    /// Returns a buffer after a read of sectors 1000 to 1099 that was sent at 10 ms and done at 20 ms.
    fn behind_a_read() -> Buffer {
        let mut buffer = Buffer::new(Some(DRIVE));
        buffer.read(at(20), at(10), Extent::at(1000, 100), Lba::new(1000), None);
        buffer
    }

    #[test]
    fn what_was_read_and_what_is_read_ahead_may_be_served() {
        let buffer = behind_a_read();
        let serves = |ms, start, len| buffer.may_serve(at(ms), Extent::at(start, len), None);
        assert!(serves(20, 1000, 100), "read again");
        assert!(!serves(20, 999, 2), "begins before it");
        assert!(
            serves(20, 1100, 300),
            "goes on: the drive is about to read that"
        );
        assert!(!serves(20, 1101, 8), "not as far yet");
        assert!(serves(21, 1200, 8), "a millisecond later");
        assert!(!serves(21, 1201, 8));
        assert!(serves(90, 1600, 8), "as far as it reads ahead");
        assert!(!serves(90, 1601, 8));
    }

    #[test]
    fn another_command_ends_reading_ahead_once_it_is_processed() {
        let mut buffer = behind_a_read();
        buffer.read(
            at(40),
            at(22),
            Extent::at(90_000, 8),
            Lba::new(90_000),
            None,
        );
        let serves = |start, len| buffer.may_serve(at(40), Extent::at(start, len), None);
        assert!(serves(1300, 100), "three milliseconds of it");
        assert!(!serves(1300, 101), "all that is there has to be");
        assert!(serves(90_008, 8), "the other one reads ahead");
        buffer.moved(at(41), None);
        assert!(!buffer.may_serve(at(50), Extent::at(90_300, 8), None));
    }

    #[test]
    fn an_arm_that_leaves_just_in_time_reads_ahead_although_a_command_waits() {
        let just_in_time = Buffering {
            stays: Nanos::from_millis(2),
            ..DRIVE
        };
        let mut buffer = Buffer::new(Some(just_in_time));
        buffer.read(at(20), at(10), Extent::at(1000, 100), Lba::new(1000), None);
        // Sent before the first read was done.
        buffer.read(
            at(40),
            at(15),
            Extent::at(90_000, 8),
            Lba::new(90_000),
            None,
        );
        let serves = |start, len| buffer.may_serve(at(40), Extent::at(start, len), None);
        assert!(serves(1100, 200) && !serves(1100, 201));
    }

    #[test]
    fn an_arm_reads_ahead_for_as_long_as_the_head_would_wait() {
        let just_in_time = Buffering {
            stays: Nanos::from_millis(8),
            ..DRIVE
        };
        for (waited, reaches) in [
            (Some(0), 1_100),
            (Some(2), 1_300),
            (Some(9), 1_600),
            (None, 1_600),
        ] {
            let mut buffer = Buffer::new(Some(just_in_time));
            let waited = waited.map(Nanos::from_millis);
            buffer.read(at(20), at(10), Extent::at(1000, 100), Lba::new(1000), None);
            buffer.read(
                at(40),
                at(15),
                Extent::at(90_000, 8),
                Lba::new(90_000),
                waited,
            );
            let has = |end: u64| buffer.has(at(40), Extent::at(1000, end - 1000));
            assert!(has(reaches) && !has(reaches + 1), "{waited:?}");
        }
    }

    #[test]
    fn hits_leave_the_drive_where_it_reads_ahead() {
        let mut buffer = behind_a_read();
        buffer.read(at(23), at(22), Extent::at(1100, 100), Lba::new(1100), None);
        let serves = |ms, start| buffer.may_serve(at(ms), Extent::at(start, 8), None);
        assert!(serves(24, 1500) && !serves(24, 1501), "from 20 ms on");
        assert!(serves(90, 1700) && !serves(90, 1701), "behind the hit");
    }

    #[test]
    fn as_many_stretches_are_kept_as_there_are_segments() {
        let mut buffer = behind_a_read();
        buffer.read(
            at(40),
            at(22),
            Extent::at(90_000, 8),
            Lba::new(90_000),
            None,
        );
        // The segment is used again, so the other segment is dropped.
        buffer.read(at(41), at(41), Extent::at(1000, 8), Lba::new(1000), None);
        buffer.read(
            at(60),
            at(42),
            Extent::at(50_000, 8),
            Lba::new(50_000),
            None,
        );
        let serves = |start| buffer.may_serve(at(60), Extent::at(start, 8), None);
        assert!(serves(1000) && serves(50_000));
        assert!(!serves(90_000));
    }

    #[test]
    fn parts_of_one_command_are_one_read() {
        let mut buffer = behind_a_read();
        buffer.read(at(20), at(10), Extent::at(1100, 100), Lba::new(1100), None);
        assert!(buffer.may_serve(at(21), Extent::at(1300, 8), None));
        assert!(!buffer.may_serve(at(21), Extent::at(1301, 8), None));
    }

    #[test]
    fn a_read_right_behind_one_in_the_drive_is_no_gap() {
        let buffer = Buffer::new(Some(DRIVE));
        let serves = |start| buffer.may_serve(at(0), Extent::at(start, 8), Some(Lba::new(700)));
        assert!(serves(700) && serves(800));
        assert!(!serves(801) && !serves(699));
    }

    #[test]
    fn a_drive_that_keeps_nothing_serves_nothing() {
        let mut none = Buffer::new(None);
        none.read(at(20), at(10), Extent::at(1000, 100), Lba::new(1000), None);
        assert!(!none.may_serve(at(20), Extent::at(1000, 8), Some(Lba::new(1000))));
        let ahead = Sectors::ZERO;
        let mut buffer = Buffer::new(Some(Buffering { ahead, ..DRIVE }));
        buffer.read(at(20), at(10), Extent::at(1000, 100), Lba::new(1000), None);
        assert!(buffer.may_serve(at(20), Extent::at(1000, 100), None));
        assert!(!buffer.may_serve(at(90), Extent::at(1100, 8), Some(Lba::new(1100))));
    }

    #[test]
    fn what_passes_in_front_of_a_read_is_that_of_the_wait_on_its_track() {
        let drive = |front| Buffer::new(Some(Buffering { front, ..DRIVE }));
        let (track, turn) = (Extent::at(1_000, 500), Nanos::from_millis(5));
        let front = |buffer: &Buffer, read, us| {
            buffer.front(Lba::new(read), Nanos::from_micros(us), track, turn)
        };
        let keeps = drive(true);
        assert!(keeps.keeps_front());
        assert_eq!(front(&keeps, 1_400, 0), Lba::new(1_400));
        assert_eq!(
            front(&keeps, 1_400, 1_000),
            Lba::new(1_300),
            "a fifth of a turn"
        );
        assert_eq!(
            front(&keeps, 1_400, 1_009),
            Lba::new(1_300),
            "whole sectors"
        );
        assert_eq!(
            front(&keeps, 1_400, 4_900),
            Lba::new(1_000),
            "not before the track"
        );
        assert_eq!(front(&keeps, 900, 1_000), Lba::new(900), "it is elsewhere");
        for keeps_none in [drive(false), Buffer::new(None)] {
            assert!(!keeps_none.keeps_front());
            assert_eq!(front(&keeps_none, 1_400, 1_000), Lba::new(1_400));
        }
    }

    #[test]
    fn a_read_is_there_only_if_all_of_it_is() {
        let mut buffer = Buffer::new(Some(DRIVE));
        buffer.read(at(20), at(10), Extent::at(1000, 100), Lba::new(900), None);
        let has = |ms, start, len| buffer.has(at(ms), Extent::at(start, len));
        assert!(has(20, 900, 200), "what passed in front of it, too");
        assert!(!has(20, 899, 8) && !has(20, 1_099, 2));
        assert!(has(21, 1_192, 8), "100 sectors are read in a millisecond");
        assert!(
            !has(21, 1_193, 8) && buffer.may_serve(at(21), Extent::at(1_193, 8), None),
            "it may be served all the same: the drive is about to read that"
        );
        assert!(!Buffer::new(None).has(at(20), Extent::at(1_000, 8)));
    }

    #[test]
    fn what_passes_in_front_of_a_command_belongs_to_whichever_part_is_done_first() {
        let parts = [(1000, 100, 1000), (1100, 8, 800)];
        for order in [[0, 1], [1, 0]] {
            let mut buffer = Buffer::new(Some(DRIVE));
            for (start, len, from) in order.map(|part: usize| parts[part]) {
                buffer.read(at(20), at(10), Extent::at(start, len), Lba::new(from), None);
            }
            assert!(buffer.has(at(20), Extent::at(800, 308)), "{order:?}");
        }
    }

    #[test]
    fn a_buffer_that_becomes_as_another_has_what_that_has() {
        let mut other = Buffer::new(Some(DRIVE));
        other.read(at(20), at(10), Extent::at(5_000, 8), Lba::new(5_000), None);
        other.become_as(&behind_a_read());
        assert!(other.has(at(20), Extent::at(1_000, 100)));
        assert!(!other.has(at(20), Extent::at(5_000, 8)));
    }

    #[test]
    fn an_eighth_of_surprises_is_not_many() {
        let mut surprises = Surprises::default();
        for _ in 0..15 {
            surprises.add(true);
            assert!(!surprises.are_many(), "too few to say");
        }
        surprises.add(true);
        assert!(surprises.are_many());
        for _ in 0..56 {
            assert!(surprises.are_many());
            surprises.add(false);
        }
        assert!(!surprises.are_many(), "8 of 64");
    }
}

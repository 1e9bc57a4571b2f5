//! A probe that leaves no trace: writes stay within a range, and all switches are restored.

use crate::{Answer, Probe, ProbeError, Switch};
use headtime_sched::Op;
use headtime_units::Extent;

/// Reason for a failure to record.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Callback that records changed switches with their old states. Called with all changed switches before a switch is turned, and again
/// after they are restored.
type Record<'a> = Box<dyn FnMut(&[(Switch, bool)]) -> Result<(), Cause> + 'a>;

/// A probe with limits.
///
/// A write or a discard that is not wholly within the scratch range fails with [`ProbeError::NotScratch`] and does not reach the drive.
/// [`Guarded::restore`] restores all changed switches. Otherwise this happens on drop, even after an error or a panic. If the process is
/// killed, its [record](Guarded::recording) lets a later start restore the switches.
pub struct Guarded<'a> {
    probe: &'a mut dyn Probe,
    scratch: Option<Extent>,
    in_drive: usize,
    /// Changed switches with their old states.
    turned: Vec<(Switch, bool)>,
    record: Record<'a>,
    /// True if switches may be turned.
    switches: bool,
}

impl<'a> Guarded<'a> {
    /// Limits a probe without commands in the drive. Only `scratch` may be written.
    pub fn new(probe: &'a mut dyn Probe, scratch: Option<Extent>) -> Guarded<'a> {
        Guarded {
            probe,
            scratch,
            in_drive: 0,
            turned: Vec::new(),
            record: Box::new(|_| Ok(())),
            switches: true,
        }
    }

    /// Forbids changes of switches, for hosts that cannot record them. If nothing may be written, the state of the write cache is still
    /// visible.
    #[must_use]
    pub fn without_switches(mut self) -> Guarded<'a> {
        self.switches = false;
        self
    }

    /// Records changed switches and their old states with `record`, before a switch is turned. If recording fails, the switch is not
    /// turned.
    #[must_use]
    pub fn recording(
        mut self,
        record: impl FnMut(&[(Switch, bool)]) -> Result<(), Cause> + 'a,
    ) -> Guarded<'a> {
        self.record = Box::new(record);
        self
    }

    /// Restores switches that an earlier probe left changed, according to its record.
    ///
    /// # Errors
    ///
    /// As [`Guarded::restore`].
    pub fn restore_earlier(self, turned: &[(Switch, bool)]) -> Result<(), ProbeError> {
        let mut guarded = self;
        guarded.turned = turned.to_vec();
        guarded.restore()
    }

    /// Restores all switches.
    ///
    /// # Errors
    ///
    /// If the drive refuses to restore a switch, unless the switch has its old state anyway. All other switches are restored. The drop
    /// makes another attempt.
    pub fn restore(mut self) -> Result<(), ProbeError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), ProbeError> {
        if self.turned.is_empty() {
            return Ok(());
        }
        // Learning may have ended in the middle of a batch. Commands without an answer do not prevent the restoration.
        while self.in_drive > 0 {
            let _ = self.answer();
        }
        // The write cache comes last: a disk that saves it may save all of its mode page, including look-ahead.
        self.turned
            .sort_by_key(|&(which, _)| which == Switch::WriteCache);
        let mut failed = None;
        let probe = &mut *self.probe;
        // A refused switch does not prevent the others. If it was never turned, it has its old state.
        self.turned
            .retain(|&(which, on)| match probe.set(which, on) {
                Err(error) if probe.switch(which) != Some(on) => {
                    failed.get_or_insert(error);
                    true
                }
                _ => false,
            });
        let recorded = (self.record)(&self.turned);
        if let Some(error) = failed {
            return Err(error);
        }
        recorded.map_err(|source| ProbeError::NotRecorded {
            which: Switch::WriteCache,
            source,
        })
    }

    fn may_write(&self, extent: Extent) -> bool {
        let within =
            |scratch: Extent| scratch.start <= extent.start && extent.end() <= scratch.end();
        self.scratch.is_some_and(within)
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        // If the drive refuses now, the record remains for the next start.
        let _ = self.put_back();
    }
}

impl std::fmt::Debug for Guarded<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guarded")
            .field("scratch", &self.scratch)
            .field("turned", &self.turned)
            .finish_non_exhaustive()
    }
}

impl crate::Layer for Guarded<'_> {
    fn under(&self) -> &dyn Probe {
        self.probe
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        self.probe
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        if matches!(op, Op::Write | Op::Discard) && !self.may_write(extent) {
            return Err(ProbeError::NotScratch(extent));
        }
        self.probe.send(tag, op, extent)?;
        self.in_drive += 1;
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        // If waiting for an answer fails, the command is given up.
        self.in_drive = self.in_drive.saturating_sub(1);
        self.probe.answer()
    }

    fn switch(&mut self, which: Switch) -> Option<bool> {
        let is_only_read = which == Switch::WriteCache && self.scratch.is_none();
        (self.switches || is_only_read)
            .then(|| self.probe.switch(which))
            .flatten()
    }

    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        let known = Probe::switch(self, which).filter(|_| self.switches);
        let is_on = known.ok_or(ProbeError::NoSwitch(which))?;
        if is_on == on {
            return Ok(());
        }
        if !self.turned.iter().any(|&(turned, _)| turned == which) {
            self.turned.push((which, is_on));
            if let Err(source) = (self.record)(&self.turned) {
                self.turned.pop();
                return Err(ProbeError::NotRecorded { which, source });
            }
        }
        self.probe.set(which, on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Modelled;
    use headtime_disk::profile::by_name;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    fn probe() -> Modelled {
        Modelled::new(&by_name("wd5000aaks").unwrap(), 1)
    }

    fn switches(probe: &mut Modelled) -> [Option<bool>; 2] {
        Switch::ALL.map(|which| probe.switch(which))
    }

    fn turn_both_and_leave_reads_behind(guarded: &mut Guarded<'_>) {
        for which in Switch::ALL {
            guarded.set(which, false).unwrap();
            assert_eq!(guarded.switch(which), Some(false));
        }
        for tag in 0..4 {
            let read = Extent::at(u64::from(tag) * 9_000_000, 8);
            guarded.send(tag, Op::Read, read).unwrap();
        }
    }

    #[test]
    fn switches_are_back_however_learning_ends() {
        let mut probe = probe();
        let before = switches(&mut probe);
        assert_eq!(before, [Some(true); 2]);
        let mut guarded = Guarded::new(&mut probe, None);
        turn_both_and_leave_reads_behind(&mut guarded);
        guarded.restore().unwrap();
        assert_eq!(switches(&mut probe), before, "told to");

        let mut guarded = Guarded::new(&mut probe, None);
        turn_both_and_leave_reads_behind(&mut guarded);
        drop(guarded);
        assert_eq!(switches(&mut probe), before, "dropped");

        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut guarded = Guarded::new(&mut probe, None);
            turn_both_and_leave_reads_behind(&mut guarded);
            panic!("learning has a bug");
        }));
        assert!(panicked.is_err());
        assert_eq!(switches(&mut probe), before, "panicked");
    }

    #[test]
    fn a_switch_that_is_turned_twice_goes_back_to_what_it_was_at_first() {
        let mut probe = probe();
        probe.set(Switch::WriteCache, false).unwrap();
        let mut guarded = Guarded::new(&mut probe, None);
        for on in [true, false, true] {
            guarded.set(Switch::WriteCache, on).unwrap();
        }
        drop(guarded);
        assert_eq!(probe.switch(Switch::WriteCache), Some(false));
    }

    #[test]
    fn what_is_recorded_tells_the_next_start_what_to_put_back() {
        let mut probe = probe();
        let mut kept = Vec::new();
        let mut guarded = Guarded::new(&mut probe, None).recording(|turned| {
            kept = turned.to_vec();
            Ok(())
        });
        guarded.set(Switch::LookAhead, false).unwrap();
        guarded.set(Switch::WriteCache, false).unwrap();
        // As if the process were killed.
        std::mem::forget(guarded);
        assert_eq!(switches(&mut probe), [Some(false); 2]);
        assert_eq!(
            kept,
            [(Switch::LookAhead, true), (Switch::WriteCache, true)]
        );
        let mut last = None;
        let guarded = Guarded::new(&mut probe, None).recording(|turned| {
            last = Some(turned.to_vec());
            Ok(())
        });
        guarded.restore_earlier(&kept).unwrap();
        assert_eq!(switches(&mut probe), [Some(true); 2]);
        assert_eq!(last, Some(Vec::new()), "nothing is left to be put back");
    }

    /// A drive that refuses to turn a given switch, and logs all requests.
    struct Stuck {
        drive: Modelled,
        which: Rc<Cell<Option<Switch>>>,
        told: Vec<(Switch, bool)>,
    }

    impl crate::Layer for Stuck {
        fn under(&self) -> &dyn Probe {
            &self.drive
        }

        fn under_mut(&mut self) -> &mut dyn Probe {
            &mut self.drive
        }

        fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
            self.told.push((which, on));
            match self.which.get() {
                Some(stuck) if stuck == which => Err(ProbeError::Refused {
                    which,
                    source: "it is stuck".into(),
                }),
                _ => self.drive.set(which, on),
            }
        }
    }

    /// A drive whose answers never reach the host.
    struct Hanging(Modelled);

    impl crate::Layer for Hanging {
        fn under(&self) -> &dyn Probe {
            &self.0
        }

        fn under_mut(&mut self) -> &mut dyn Probe {
            &mut self.0
        }

        fn answer(&mut self) -> Result<Answer, ProbeError> {
            // The answer is consumed, which permits switching.
            self.0.answer()?;
            Err(ProbeError::Stopped)
        }
    }

    #[test]
    fn commands_that_are_not_answered_keep_no_switch_from_going_back() {
        let mut hanging = Hanging(probe());
        let mut guarded = Guarded::new(&mut hanging, None);
        guarded.set(Switch::WriteCache, false).unwrap();
        for tag in 0..4 {
            let read = Extent::at(u64::from(tag) * 9_000_000, 8);
            guarded.send(tag, Op::Read, read).unwrap();
        }
        guarded.restore().unwrap();
        assert_eq!(hanging.switch(Switch::WriteCache), Some(true));
    }

    #[test]
    fn the_write_cache_is_put_back_last() {
        for first in Switch::ALL {
            let mut stuck = Stuck {
                drive: probe(),
                which: Rc::default(),
                told: Vec::new(),
            };
            let mut guarded = Guarded::new(&mut stuck, None);
            guarded.set(first, false).unwrap();
            for which in Switch::ALL {
                guarded.set(which, false).unwrap();
            }
            guarded.restore().unwrap();
            assert_eq!(
                stuck.told[2..],
                [(Switch::LookAhead, true), (Switch::WriteCache, true)]
            );
        }
    }

    #[test]
    fn one_that_is_stuck_keeps_no_other_and_stays_recorded() {
        let mut stuck = Stuck {
            drive: probe(),
            which: Rc::default(),
            told: Vec::new(),
        };
        let which_is_stuck = Rc::clone(&stuck.which);
        let mut kept = Vec::new();
        let mut guarded = Guarded::new(&mut stuck, None).recording(|turned| {
            kept = turned.to_vec();
            Ok(())
        });
        for which in Switch::ALL {
            guarded.set(which, false).unwrap();
        }
        which_is_stuck.set(Some(Switch::LookAhead));
        let error = guarded.restore().unwrap_err().to_string();
        assert_eq!(error, "look-ahead cannot be turned: it is stuck");
        assert_eq!(kept, [(Switch::LookAhead, true)]);
        assert_eq!(
            Switch::ALL.map(|which| stuck.switch(which)),
            [Some(false), Some(true)]
        );
        stuck.which.set(None);
        Guarded::new(&mut stuck, None)
            .restore_earlier(&kept)
            .unwrap();
        assert_eq!(stuck.switch(Switch::LookAhead), Some(true));
    }

    #[test]
    fn one_that_was_never_turned_need_not_be_put_back() {
        let mut stuck = Stuck {
            drive: probe(),
            which: Rc::new(Cell::new(Some(Switch::LookAhead))),
            told: Vec::new(),
        };
        let mut kept = Vec::new();
        let mut guarded = Guarded::new(&mut stuck, None).recording(|turned| {
            kept = turned.to_vec();
            Ok(())
        });
        guarded.set(Switch::LookAhead, false).unwrap_err();
        guarded.restore().unwrap();
        assert!(kept.is_empty(), "{kept:?}");
    }

    #[test]
    fn a_switch_is_not_turned_where_that_cannot_be_recorded() {
        let mut probe = probe();
        let mut guarded = Guarded::new(&mut probe, None).recording(|_| Err("disk full".into()));
        let error = guarded.set(Switch::LookAhead, false).unwrap_err();
        assert!(error.to_string().ends_with("disk full"), "{error}");
        drop(guarded);
        assert_eq!(switches(&mut probe), [Some(true); 2]);
    }

    #[test]
    fn without_switches_none_is_turned_and_the_write_cache_is_seen_where_nothing_is_written() {
        let mut probe = probe();
        for (scratch, seen) in [(Some(Extent::at(0, 8)), None), (None, Some(true))] {
            let mut guarded = Guarded::new(&mut probe, scratch).without_switches();
            let shown = Switch::ALL.map(|which| guarded.switch(which));
            assert_eq!(shown, [None, seen]);
        }
        let mut guarded = Guarded::new(&mut probe, None).without_switches();
        for which in Switch::ALL {
            assert!(matches!(
                guarded.set(which, false),
                Err(ProbeError::NoSwitch(_))
            ));
        }
        drop(guarded);
        assert_eq!(switches(&mut probe), [Some(true); 2]);
    }

    proptest! {
        #[test]
        fn nothing_is_written_outside_the_scratch_range(
            scratch in prop::option::of((0_u64..5_000, 0_u64..500)),
            asked in prop::collection::vec((0_u8..3, 0_u64..6_000, 1_u64..300), 1..60),
        ) {
            let profile = by_name("wd5000aaks").unwrap();
            let mut probe = Modelled::new(&profile, 1);
            let scratch = scratch.map(|(start, len)| Extent::at(start, len));
            probe.record_written();
            let mut guarded = Guarded::new(&mut probe, scratch);
            guarded.set(Switch::WriteCache, false).unwrap();
            for (op, start, len) in asked {
                let op = [Op::Read, Op::Write, Op::Discard][usize::from(op)];
                let extent = Extent::at(start, len);
                let within = scratch.is_some_and(|scratch| {
                    (start..start + len).all(|sector| {
                        scratch.start.get() <= sector && sector < scratch.end().get()
                    })
                });
                match guarded.send(0, op, extent) {
                    Ok(()) => {
                        prop_assert!(op == Op::Read || within, "{op:?} {extent} was sent");
                        guarded.answer().unwrap();
                    }
                    Err(ProbeError::NotScratch(refused)) => {
                        prop_assert!(op != Op::Read && !within, "{op:?} {extent} was refused");
                        prop_assert_eq!(refused, extent);
                    }
                    Err(other) => prop_assert!(false, "{}", other),
                }
            }
            drop(guarded);
            for extent in probe.take_written() {
                let scratch = scratch.expect("something may be written");
                prop_assert!(scratch.start <= extent.start && extent.end() <= scratch.end());
            }
        }
    }
}

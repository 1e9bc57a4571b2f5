//! Scrubs with a date, and with a bound on the latency of clients.

use crate::common::{request, submit};
use crate::rig::{Of, Rig, USUAL, soon, unreadable};
use headtime_gaps::Verdict;
use headtime_sched::{Class, Op};
use headtime_serve::disk::Disk;
use headtime_serve::request::{Completer, Completion};
use headtime_serve::scrub::{
    PromiseStatus, Promises, ScrubAsk, ScrubError, ScrubState, ScrubStatus,
};
use headtime_testkit::Folder;
use headtime_units::{Extent, Nanos};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::Duration;

/// Clients that always wait for something, each for one random read of 4 KiB after the other. Each next read comes from the disk's thread,
/// at the completion before. So clients do not pause on a busy machine either.
struct Busy(Arc<Clients>);

#[derive(Debug)]
struct Clients {
    me: Weak<Clients>,
    disk: Disk,
    class: Class,
    next: AtomicU64,
    under_way: AtomicU64,
    ends: AtomicBool,
}

impl Clients {
    fn ask(&self) {
        let nth = self.next.fetch_add(1, Ordering::SeqCst);
        let to = self
            .me
            .upgrade()
            .expect("clients live until all reads are done");
        let mut asked = request(&self.disk, nth, Op::Read, nth * 7919 % 1000 * 8, to);
        asked.class = self.class;
        submit(&self.disk, asked);
    }
}

impl Completer for Clients {
    fn complete(&self, _: Completion) {
        match self.ends.load(Ordering::SeqCst) {
            false => self.ask(),
            true => drop(self.under_way.fetch_sub(1, Ordering::SeqCst)),
        }
    }
}

impl Busy {
    fn begin(disk: &Disk, clients: u64, class: Class) -> Busy {
        let all = Arc::new_cyclic(|me| Clients {
            me: Weak::clone(me),
            disk: disk.clone(),
            class,
            next: AtomicU64::new(0),
            under_way: AtomicU64::new(clients),
            ends: AtomicBool::new(false),
        });
        (0..clients).for_each(|_| all.ask());
        Busy(all)
    }

    fn end(self) {
        self.0.ends.store(true, Ordering::SeqCst);
        while self.0.under_way.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(1));
        }
    }
}

fn within(millis: u64) -> ScrubAsk {
    ScrubAsk {
        finish_within: Some(Some(Nanos::from_millis(millis))),
        ..ScrubAsk::default()
    }
}

fn bound(more: &str) -> ScrubAsk {
    ScrubAsk {
        p99: Some(more.parse().ok()),
        ..ScrubAsk::default()
    }
}

fn promise(status: &ScrubStatus) -> PromiseStatus {
    status.promise.expect("something was promised")
}

fn verdict(status: &ScrubStatus) -> Verdict {
    promise(status).verdict
}

#[test]
fn a_date_is_kept_beside_clients_that_never_pause_with_a_belief_and_without() {
    for believes in [false, true] {
        let rig = Rig::emulated(Of { believes, ..USUAL });
        let busy = Busy::begin(&rig.disk, 2, Class::default());
        rig.begin(&within(15_000));
        let done = rig.to_the_end();
        busy.end();
        let said = promise(&done);
        assert_eq!(said.verdict, Verdict::Holds, "{done:?}");
        assert!(said.ends <= said.promises.date.map(|date| date.at()));
        assert!(done.outright > 100, "{done:?}");
        assert!(said.waits.requests > 100, "{said:?}");
        let log = rig.stop();
        assert!(log.contains(" outright"), "{believes}");
    }
}

#[test]
fn with_a_date_what_cannot_be_read_is_found_beside_clients_that_never_pause() {
    let rig = Rig::emulated(Of {
        sectors: 1 << 13,
        ..USUAL
    });
    rig.inject(unreadable(5003, 1, 0));
    let busy = Busy::begin(&rig.disk, 2, Class::default());
    rig.begin(&within(15_000));
    let done = rig.to_the_end();
    busy.end();
    assert_eq!(done.unreadable.extents(), [Extent::at(5003, 1)]);
    rig.stop();
}

#[test]
fn a_date_that_no_drive_could_keep_is_refused_with_what_it_takes() {
    let rig = Rig::emulated(USUAL);
    let refused = |ask: &ScrubAsk| rig.scrubs.begin(ask).expect_err("refused").to_string();
    let text = refused(&within(1_000));
    assert!(
        text.contains("finish-within: 1s: the assumed drive"),
        "{text}"
    );
    assert!(
        text.ends_with("takes 3.245s at the least for 16MiB, at 5.2 MB/s"),
        "{text}"
    );
    assert!(refused(&within(0)).contains("more than no time"));
    let never = ScrubAsk {
        idle: Some(None),
        ..bound("+5%")
    };
    assert!(refused(&never).contains("takes idle time"));
    assert!(rig.scrubs.status().is_none());
    rig.begin(&within(600_000));
    rig.stop();
}

#[test]
fn where_no_drive_is_believed_in_a_date_that_cannot_hold_is_said_soon_and_what_became_of_it_at_the_end()
 {
    let folder = Folder::new();
    let of = Of {
        believes: false,
        folder: Some(&folder),
        ..USUAL
    };
    let rig = Rig::emulated(of);
    rig.begin(&within(1_000));
    // Without a forecast, the verdict may consider the date alone.
    let late =
        rig.wait(|status| verdict(status) == Verdict::Late && promise(status).ends.is_some());
    assert!(late.left > 0, "{late:?}");
    assert!(promise(&late).ends > promise(&late).promises.date.map(|date| date.at()));
    // The scrub reads on, to be as little late as possible.
    let done = rig.to_the_end();
    assert_eq!(verdict(&done), Verdict::Late);
    rig.stop();
    let next = Rig::emulated(of);
    next.scrubs.resume_unfinished().expect("it is there");
    let over = next.status();
    assert_eq!(
        (&over.state, verdict(&over)),
        (&ScrubState::Done, Verdict::Late)
    );
    assert_eq!(promise(&over).since, promise(&done).since);
    next.stop();
}

#[test]
fn promises_outlive_the_server_and_the_time_goes_on() {
    let folder = Folder::new();
    let of = Of {
        believes: false,
        folder: Some(&folder),
        ..USUAL
    };
    let rig = Rig::emulated(of);
    let both = ScrubAsk {
        p99: Some("+5%".parse().ok()),
        ..within(2_500)
    };
    rig.begin(&both);
    let before = promise(&rig.status()).promises;
    rig.scrubs.pause().expect("under way");
    rig.wait(|status| status.state == ScrubState::Paused);
    rig.stop();
    sleep(Duration::from_millis(2_600));
    let rig = Rig::emulated(of);
    rig.scrubs.resume_unfinished().expect("it is there");
    assert_eq!(promise(&rig.status()).promises, before);
    // The scrub is still suspended, and the date is over.
    let late = rig.wait(|status| verdict(status) == Verdict::Late);
    assert_eq!(late.state, ScrubState::Paused);
    // Repeating a promise does not move its date.
    rig.begin(&both);
    assert_eq!(promise(&rig.status()).promises, before);
    // Another span is another date.
    rig.begin(&within(60_000));
    let after = promise(&rig.status());
    assert_eq!(after.promises.p99, before.p99);
    let date = |promises: Promises| promises.date.map(|date| date.at());
    assert!(date(after.promises) > date(before));
    let done = rig.to_the_end();
    assert_eq!(verdict(&done), Verdict::Holds, "{done:?}");
    rig.stop();
}

#[test]
fn a_scrub_that_rests_says_when_its_date_cannot_hold_any_more() {
    let rig = Rig::emulated(Of {
        believes: false,
        ..USUAL
    });
    rig.begin(&within(10_000));
    rig.scrubs.pause().expect("under way");
    let late = rig.wait(|status| verdict(status) == Verdict::Late);
    assert!(
        late.state == ScrubState::Paused && late.left > 0,
        "{late:?}"
    );
    rig.stop();
}

#[test]
#[ignore = "minutes; .ci/nightly"]
fn promises_are_made_changed_and_taken_back_while_a_scrub_reads() {
    let rig = Rig::emulated(Of {
        sectors: 1 << 20,
        ..USUAL
    });
    rig.begin(&soon());
    assert!(rig.wait(|status| status.in_idle_time > 0).promise.is_none());
    rig.begin(&bound("+10%"));
    let made = promise(&rig.status()).promises;
    assert!(made.date.is_none());
    rig.begin(&within(3_600_000));
    let dated = promise(&rig.status()).promises;
    assert_eq!((dated.p99, dated.date.is_some()), (made.p99, true));
    // The scrub knows the drive's values at once, but not the clients' after so short a time.
    rig.wait(|status| promise(status).ends.is_some());
    assert_eq!(verdict(&rig.status()), Verdict::Unknown);
    let refused = rig.scrubs.begin(&within(1_000)).expect_err("refused");
    assert!(matches!(
        refused,
        ScrubError::Value {
            key: "finish-within",
            ..
        }
    ));
    assert_eq!(promise(&rig.status()).promises, dated);
    rig.begin(&ScrubAsk {
        p99: Some(None),
        ..ScrubAsk::default()
    });
    rig.wait(|status| verdict(status) == Verdict::Holds);
    rig.begin(&ScrubAsk {
        finish_within: Some(None),
        ..ScrubAsk::default()
    });
    rig.wait(|status| status.promise.is_none());
    let left = rig.status().left;
    // The scrub reads on in idle time, as before.
    rig.wait(|status| status.left < left);
    rig.stop();
}

#[test]
#[ignore = "minutes; .ci/nightly"]
fn beside_urgent_clients_alone_a_date_counts_on_nothing_at_their_cost() {
    let rig = Rig::emulated(Of {
        believes: false,
        ..USUAL
    });
    let busy = Busy::begin(&rig.disk, 2, Class::REAL_TIME);
    rig.begin(&within(30_000));
    let late = rig.wait(|status| verdict(status) == Verdict::Late);
    // Where the machine keeps both clients from asking the disk is idle, and that costs nobody anything.
    assert_eq!(late.outright, 0);
    busy.end();
    let done = rig.to_the_end();
    assert_eq!(done.left, 0);
    rig.stop();
}

#[test]
fn when_a_scrub_was_done_outlives_the_server_also_if_its_verdict_is_older() {
    let folder = Folder::new();
    let of = Of {
        folder: Some(&folder),
        ..USUAL
    };
    let rig = Rig::emulated(of);
    rig.begin(&within(60_000));
    let holds = promise(&rig.wait(|status| verdict(status) == Verdict::Holds));
    let done = promise(&rig.to_the_end());
    assert_eq!((done.verdict, done.since), (Verdict::Holds, holds.since));
    let ended = done.ends.expect("it was");
    assert!(
        ended.since(holds.since) > Nanos::from_millis(500),
        "{done:?}"
    );
    rig.stop();
    let next = Rig::emulated(of);
    next.scrubs.resume_unfinished().expect("it is there");
    let over = promise(&next.status());
    assert_eq!((over.verdict, over.since), (done.verdict, done.since));
    let told = over.ends.expect("it was");
    let apart = told.since(ended).max(ended.since(told));
    assert!(apart < Nanos::from_millis(500), "{over:?} {done:?}");
    next.stop();
}

#[test]
#[ignore = "minutes; .ci/nightly"]
fn idle_time_begins_as_promises_want_it_unless_it_was_said_when() {
    let millis = |status: &ScrubStatus| status.idle.map(|idle| idle.as_nanos() / 1_000_000);
    let folder = Folder::new();
    let of = Of {
        sectors: 1 << 20,
        folder: Some(&folder),
        ..USUAL
    };
    let rig = Rig::emulated(of);
    rig.begin(&ScrubAsk::default());
    rig.scrubs.pause().expect("under way");
    assert_eq!(millis(&rig.status()), Some(50));
    rig.begin(&within(3_600_000));
    rig.wait(|status| millis(status) == Some(2));
    rig.stop();
    // The file records that the user has given no idle time.
    let rig = Rig::emulated(of);
    rig.scrubs.resume_unfinished().expect("it is there");
    assert_eq!(millis(&rig.status()), Some(2));
    rig.begin(&ScrubAsk {
        finish_within: Some(None),
        ..ScrubAsk::default()
    });
    rig.wait(|status| millis(status) == Some(50));
    rig.scrubs.stop().expect("under way");
    rig.wait(|status| status.state == ScrubState::Stopped);
    rig.begin(&soon());
    rig.begin(&within(3_600_000));
    rig.wait(|status| promise(status).ends.is_some());
    assert_eq!(millis(&rig.status()), Some(1));
    rig.stop();
}

/// A scrub that has all but the parts of a block with a bad sector, beside clients and urgent ones. Only the latter keep it from looking for that.
fn with_a_bad_sector() -> (Rig, Busy, Busy) {
    let rig = Rig::emulated(Of {
        sectors: 1 << 13,
        ..USUAL
    });
    rig.inject(unreadable(5003, 1, 0));
    // All but the parts of a block is read beside clients that let something pass.
    let busy = Busy::begin(&rig.disk, 2, Class::default());
    rig.begin(&within(8_000));
    rig.wait(|status| status.left == 1 && status.unreadable.sectors() == 0);
    let urgent = Busy::begin(&rig.disk, 2, Class::REAL_TIME);
    (rig, busy, urgent)
}

#[test]
fn nothing_of_what_cannot_be_read_is_looked_for_before_urgent_requests() {
    // Where the machine keeps the urgent ones from asking, the disk is idle, and it may be looked for.
    let waits = || {
        let (rig, busy, urgent) = with_a_bad_sector();
        busy.end();
        sleep(Duration::from_secs(1));
        // A few reads more, and it would be known which sector.
        let waits = rig.status();
        urgent.end();
        let done = rig.to_the_end();
        assert_eq!(done.unreadable.extents(), [Extent::at(5003, 1)]);
        rig.stop();
        (waits.left, waits.unreadable.sectors()) == (1, 0)
    };
    assert!((0..5).any(|_| waits()));
}

#[test]
fn without_a_date_what_cannot_be_read_is_found_beside_clients_that_never_pause() {
    let (rig, busy, urgent) = with_a_bad_sector();
    rig.begin(&ScrubAsk {
        finish_within: Some(None),
        ..ScrubAsk::default()
    });
    rig.wait(|status| status.promise.is_none());
    urgent.end();
    let done = rig.to_the_end();
    busy.end();
    assert_eq!(done.unreadable.extents(), [Extent::at(5003, 1)]);
    rig.stop();
}

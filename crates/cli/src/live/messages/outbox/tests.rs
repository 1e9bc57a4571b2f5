//! Tests of lines whose sink is slow, full, gone, or stuck.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Reaction of a sink to a write.
enum Does {
    /// Takes at most this number of bytes.
    Take(usize),
    Fail(ErrorKind),
}

/// A sink that reports each write, and then reacts as the test tells it. After the test stops telling, the sink takes everything.
struct Sink {
    asked: Sender<()>,
    told: Receiver<Does>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The test may no longer receive reports.
        let _ = self.asked.send(());
        let len = match self.told.recv() {
            Ok(Does::Fail(kind)) => return Err(kind.into()),
            Ok(Does::Take(most)) => bytes.len().min(most),
            Err(_) => bytes.len(),
        };
        self.taken.lock().unwrap().extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An outbox, and the test's side of its sink.
struct Rig {
    outbox: Outbox,
    asked: Receiver<()>,
    tell: Option<Sender<Does>>,
    taken: Arc<Mutex<Vec<u8>>>,
}

/// A time longer than any test.
const AGES: Nanos = Nanos::from_secs(3600);
const SOON: Nanos = Nanos::from_millis(20);

const SMALL: Bounds = Bounds {
    lines: 4,
    bytes: 1000,
    retry: Duration::from_millis(1),
};

impl Rig {
    fn new(bounds: Bounds) -> Rig {
        let (ask, asked) = channel();
        let (tell, told) = channel();
        let taken = Arc::default();
        let sink = Sink {
            asked: ask,
            told,
            taken: Arc::clone(&taken),
        };
        let missing = |count| format!("[{count} missing]\n");
        let outbox = Outbox::start(Box::new(sink), bounds, Box::new(missing)).unwrap();
        Rig {
            outbox,
            asked,
            tell: Some(tell),
            taken,
        }
    }

    fn put(&self, lines: &[&str]) {
        for line in lines {
            self.outbox.put(format!("{line}\n"));
        }
    }

    fn dropped(&self) -> u64 {
        self.outbox.dropped().load(Ordering::Relaxed)
    }

    fn tell(&self, does: Does) {
        self.tell.as_ref().unwrap().send(does).unwrap();
    }

    /// Waits until the outbox writes to the sink.
    fn is_asked(&self) {
        self.asked.recv().unwrap();
    }

    /// Lets the sink take everything from now on. Returns everything taken so far.
    fn rest(&mut self) -> String {
        self.tell = None;
        assert!(self.outbox.empty(AGES));
        self.taken()
    }

    fn taken(&self) -> String {
        String::from_utf8(self.taken.lock().unwrap().clone()).unwrap()
    }
}

/// An outbox whose writer is stuck with one line, while `lines` wait.
fn stuck(bounds: Bounds, lines: &[&str]) -> Rig {
    let rig = Rig::new(bounds);
    rig.put(&["first"]);
    rig.is_asked();
    rig.put(lines);
    rig
}

#[test]
fn a_sink_that_takes_little_at_a_time_gets_whole_lines_in_order() {
    let mut rig = Rig::new(BOUNDS);
    for most in [1, 2, 3, 4].into_iter().cycle().take(100) {
        rig.tell(Does::Take(most));
    }
    let lines: Vec<String> = (0..200).map(|number| format!("line {number}")).collect();
    lines.iter().for_each(|line| rig.put(&[line]));
    assert_eq!(rig.rest(), lines.join("\n") + "\n");
    assert_eq!(rig.dropped(), 0);
}

#[test]
fn lines_beyond_the_bound_are_dropped_and_counted_and_said_to_be_missing() {
    let mut rig = stuck(SMALL, &["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(rig.dropped(), 3);
    assert_eq!(rig.taken(), "");
    // The missing lines are reported even if no line follows.
    assert_eq!(rig.rest(), "first\n1\n2\n3\n4\n[3 missing]\n");
    rig.put(&["8"]);
    assert_eq!(rig.rest(), "first\n1\n2\n3\n4\n[3 missing]\n8\n");
    assert_eq!(rig.dropped(), 3);
}

#[test]
fn bytes_have_a_bound_too() {
    let bounds = Bounds { bytes: 25, ..SMALL };
    let mut rig = stuck(bounds, &["123456789", "123456789", "1234", "12345", "x"]);
    // The fourth line had no room. The fifth line must not come before the report of missing lines.
    assert_eq!(rig.dropped(), 2);
    let expected = "first\n123456789\n123456789\n1234\n[2 missing]\n";
    assert_eq!(rig.rest(), expected);
}

/// A reader that is too slow gets whole stretches of lines. Otherwise every second line would report missing lines.
#[test]
fn after_being_full_lines_are_taken_again_when_half_is_written() {
    let mut rig = stuck(SMALL, &["1", "2", "3", "4", "5"]);
    assert_eq!(rig.dropped(), 1);
    let one_more_is_written = || {
        rig.tell(Does::Take(100));
        // The writer is now stuck with the next line.
        rig.is_asked();
    };
    one_more_is_written();
    rig.put(&["too early"]);
    assert_eq!(rig.dropped(), 2);
    one_more_is_written();
    rig.put(&["b", "c"]);
    assert_eq!(rig.dropped(), 2);
    rig.put(&["too many"]);
    assert_eq!(rig.dropped(), 3);
    let all = "first\n1\n2\n3\n4\n[2 missing]\nb\nc\n[1 missing]\n";
    assert_eq!(rig.rest(), all);
}

#[test]
fn what_cannot_be_written_is_written_when_it_can_and_no_line_is_torn() {
    let mut rig = Rig::new(SMALL);
    for does in [
        Does::Fail(ErrorKind::StorageFull),
        Does::Fail(ErrorKind::Interrupted),
        Does::Take(3),
        Does::Fail(ErrorKind::BrokenPipe),
        Does::Take(0),
        Does::Fail(ErrorKind::WouldBlock),
        Does::Take(1),
    ] {
        rig.tell(does);
    }
    rig.put(&["one two", "three"]);
    assert_eq!(rig.rest(), "one two\nthree\n");
    assert_eq!(rig.dropped(), 0);
}

#[test]
fn the_end_waits_for_what_is_left_but_not_for_what_is_stuck() {
    let mut rig = stuck(SMALL, &["last"]);
    assert!(!rig.outbox.empty(SOON));
    assert_eq!(rig.rest(), "first\nlast\n");
    assert!(rig.outbox.empty(Nanos::ZERO));
}

#[test]
fn the_end_does_not_wait_for_what_always_fails() {
    let mut rig = Rig::new(SMALL);
    for _ in 0..1000 {
        rig.tell(Does::Fail(ErrorKind::StorageFull));
    }
    rig.put(&["x"]);
    assert!(!rig.outbox.empty(SOON));
    assert_eq!(rig.rest(), "x\n");
}

/// Only the first call waits. Otherwise each call would wait for half a second.
#[test]
fn of_many_who_wait_for_what_is_stuck_only_the_first_waits() {
    let mut rig = stuck(SMALL, &[]);
    let clock = Clock::start();
    let half = Nanos::from_millis(500);
    for _ in 0..100 {
        assert!(!rig.outbox.empty_unless_stuck(half));
    }
    let taken = clock.now() - Time::ZERO;
    assert!(taken < Nanos::from_secs(25), "{taken}");
    assert_eq!(rig.rest(), "first\n");
    rig.tell = None;
    rig.put(&["second"]);
    assert!(rig.outbox.empty_unless_stuck(AGES));
}

/// Every line is written or reported as missing, in any order of the threads.
#[test]
fn lines_of_many_threads_stay_whole_and_in_order_and_what_is_missing_adds_up() {
    const THREADS: usize = 8;
    const LINES: usize = 2000;
    let bounds = Bounds { lines: 16, ..SMALL };
    let mut rig = Rig::new(bounds);
    rig.tell = None;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let outbox = rig.outbox.clone();
            scope.spawn(move || {
                for line in 0..LINES {
                    outbox.put(format!("{thread} {line}\n"));
                }
            });
        }
    });
    let (mut written, mut missing) = (0, 0);
    let mut next = [0; THREADS];
    for line in rig.rest().lines() {
        if let Some(count) = line.strip_suffix(" missing]") {
            missing += count[1..].parse::<u64>().unwrap();
            continue;
        }
        let (thread, number) = line.split_once(' ').unwrap();
        let (thread, number): (usize, usize) = (thread.parse().unwrap(), number.parse().unwrap());
        assert!(number >= next[thread], "{line} after {}", next[thread]);
        next[thread] = number + 1;
        written += 1;
    }
    assert_eq!(missing, rig.dropped());
    assert_eq!(written + missing, (THREADS * LINES) as u64);
}

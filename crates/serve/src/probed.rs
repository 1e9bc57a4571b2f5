//! Device as a probe: the machine's clock times its commands.

mod kernel;
mod remote;

pub use kernel::Kernel;
pub use remote::Remote;

use crate::buffer::Pool;
use crate::device::{Device, Part, Parts};
use crate::request::{Data, Failure, Kind};
use headtime_engine::{DriveTag, RequestId};
use headtime_linux::clock::{Clock, timespec};
use headtime_linux::switch::SwitchError;
use headtime_probe::{Answer, Probe, ProbeError, Switch};
use headtime_sched::{Op, Request};
use headtime_units::{Extent, Nanos, Sectors, Time};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Longest wait for the answer to a command.
const PATIENCE: Nanos = Nanos::from_secs(120);

/// Device that is probed alone and directly.
///
/// A write writes zeroes. The caller has to prevent writes where none are allowed ([`headtime_probe::Guarded`]).
#[derive(Debug)]
pub struct Probed<D: Device> {
    name: String,
    device: D,
    clock: Clock,
    pool: Pool,
    /// Time at which the command of each tag was sent, while the device has the command.
    sent: Vec<Option<Time>>,
    kernel: Option<Kernel>,
}

impl<D: Device> Probed<D> {
    /// Makes a probe of a device. `name` is the device's name in reports.
    pub fn new(name: String, device: D) -> Probed<D> {
        let depth = device.geometry().depth as usize;
        Probed {
            name,
            device,
            clock: Clock::start(),
            pool: Pool::new(),
            sent: vec![None; depth],
            kernel: None,
        }
    }

    /// Adds the kernel's knowledge of the disk: its switches, the number of commands that it gets at a time, and the size of the medium's
    /// sectors.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Probed<D> {
        if let Some(depth) = kernel.queue_depth() {
            self.sent.truncate(usize::from(depth));
        }
        self.kernel = Some(kernel);
        self
    }

    /// Name that no other disk has, as far as that is known.
    pub fn identity(&self) -> &str {
        let known = self.kernel.as_ref().map(Kernel::identity);
        known.unwrap_or(&self.name)
    }

    /// Reason why the disk's look-ahead cannot be switched; `None` if it can be, or the device is a file, which has no look-ahead.
    pub fn without_look_ahead(&self) -> Option<SwitchError> {
        let disk = self.kernel.as_ref().filter(|kernel| !kernel.is_file())?;
        disk.look_ahead().err()
    }

    fn parts(&self, op: Op, extent: Extent) -> Parts {
        let bytes = extent.len.bytes(self.device.geometry().sector_bytes) as usize;
        let data = match op {
            Op::Read => Data::Buffer(self.pool.take(bytes)),
            // With `Data::Zeroes` a file might write nothing.
            Op::Write => {
                let mut buffer = self.pool.take(bytes);
                buffer.fill(0);
                Data::Buffer(buffer)
            }
            Op::Flush | Op::Discard => Data::None,
        };
        vec![Part {
            id: RequestId::Client(0),
            extent,
            data,
        }]
    }

    /// Waits until the device has an answer, or until `until`. In model time, the device says when its next answer is due.
    fn wait(&self, until: Time) -> Result<(), Errno> {
        let now = self.clock.now();
        if self.device.in_model_time() {
            let next = self.device.next_event().unwrap_or(until).min(until);
            sleep(next.saturating_since(now));
            return Ok(());
        }
        let Some(ready) = self.device.ready_fd() else {
            return Ok(());
        };
        let timeout = timespec(until.saturating_since(now));
        match poll(&mut [PollFd::new(&ready, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn sleep(span: Nanos) {
    let mut rest = timespec(span);
    while let rustix::thread::NanosleepRelativeResult::Interrupted(left) =
        rustix::thread::nanosleep(&rest)
    {
        rest = left;
    }
}

fn failed(op: Op, extent: Extent, failure: Failure) -> ProbeError {
    ProbeError::Failed {
        op,
        extent,
        source: failure.into(),
    }
}

impl<D: Device> Probe for Probed<D> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn capacity(&self) -> Sectors {
        self.device.geometry().capacity
    }

    fn sector_bytes(&self) -> u32 {
        self.device.geometry().sector_bytes
    }

    fn physical_bytes(&self) -> u32 {
        let says = self.kernel.as_ref().and_then(Kernel::physical_bytes);
        says.unwrap_or(0).max(self.sector_bytes())
    }

    fn depth(&self) -> u16 {
        self.sent.len() as u16
    }

    fn now(&mut self) -> Time {
        self.clock.now()
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        if op != Op::Read && self.device.geometry().read_only {
            return Err(failed(op, extent, Failure::new(Kind::ReadOnly)));
        }
        let place = &mut self.sent[usize::from(tag)];
        assert!(place.is_none(), "tag {tag} is in use");
        let now = self.clock.now();
        *place = Some(now);
        let parts = self.parts(op, extent);
        let command = Request::new(DriveTag(tag.into()), op, extent, now);
        self.device.submit(now, &command, parts);
        self.device.kick();
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let oldest = self.sent.iter().flatten().min();
        let until = *oldest.expect("no command is in the device") + PATIENCE;
        loop {
            let now = self.clock.now();
            if let Some(done) = self.device.poll(now) {
                let tag = done.tag.0 as u16;
                let sent = self.sent[usize::from(tag)].take();
                return Ok(Answer {
                    tag,
                    sent: sent.expect("what is answered was sent"),
                    at: done.at,
                    failure: done.result.err().map(Into::into),
                });
            }
            let lost = |failure| failed(Op::Read, Extent::at(0, 0), failure);
            if now >= until {
                return Err(lost(Failure::new(Kind::TimedOut)));
            }
            self.wait(until).map_err(|error| {
                lost(Failure {
                    errno: Some(error.raw_os_error()),
                    ..Failure::new(Kind::Device)
                })
            })?;
        }
    }

    fn pause(&mut self, span: Nanos) {
        sleep(span);
    }

    fn switch(&mut self, which: Switch) -> Option<bool> {
        let kernel = self.kernel.as_ref()?;
        match which {
            Switch::WriteCache => kernel.write_cache(),
            Switch::LookAhead => kernel.look_ahead().ok(),
        }
    }

    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        let kernel = self.kernel.as_ref().ok_or(ProbeError::NoSwitch(which))?;
        let refused = |source| ProbeError::Refused { which, source };
        match which {
            Switch::WriteCache if kernel.write_cache().is_none() => {
                Err(ProbeError::NoSwitch(which))
            }
            Switch::WriteCache => kernel
                .set_write_cache(on)
                .map_err(|error| refused(error.into())),
            Switch::LookAhead => kernel
                .set_look_ahead(on)
                .map_err(|error| refused(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{self, FileOptions};
    use crate::null::Null;

    #[test]
    fn both_times_of_a_command_are_of_one_clock() {
        let mut probe = Probed::new("null".to_owned(), Null::new(Sectors::new(1 << 20), 4));
        for _ in 0..3 {
            let before = probe.now();
            for tag in 0..4 {
                probe.send(tag, Op::Read, Extent::at(64, 8)).unwrap();
            }
            let mut tags: Vec<u16> = (0..4)
                .map(|_| {
                    let answer = probe.answer().unwrap();
                    assert!(before <= answer.sent && answer.sent <= answer.at);
                    assert!(answer.failure.is_none());
                    answer.tag
                })
                .collect();
            tags.sort_unstable();
            assert_eq!(tags, [0, 1, 2, 3]);
            let pause = Nanos::from_millis(3);
            let began = probe.now();
            probe.pause(pause);
            assert!(probe.now() - began >= pause);
        }
    }

    #[test]
    fn a_file_that_is_only_read_is_not_written() {
        let name = format!("headtime-probed-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let content = vec![7; 1 << 20];
        std::fs::write(&path, &content).unwrap();
        let options = FileOptions {
            read_only: true,
            direct: false,
            ..FileOptions::new(&path)
        };
        let mut probe = Probed::new("file".to_owned(), file::open(&options).unwrap());
        assert_eq!((probe.capacity().get(), probe.depth()), (2048, 32));
        assert!(!probe.read(Extent::at(100, 8)).unwrap().is_zero());
        let refused = probe.send(0, Op::Write, Extent::at(100, 8)).unwrap_err();
        assert!(refused.to_string().contains("read-only"), "{refused}");
        // The tag is free.
        assert!(!probe.read(Extent::at(2040, 8)).unwrap().is_zero());
        drop(probe);
        assert_eq!(std::fs::read(&path).unwrap(), content);
        std::fs::remove_file(&path).unwrap();
    }
}

//! Helpers of tests of recording: a loop device to record, and a count of instances left in tracefs.

use crate::Folder;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

/// A loop device over a file, both gone with the test.
#[derive(Debug)]
pub struct Loop {
    /// The device file.
    pub device: PathBuf,
    /// Folder of the device's file.
    _folder: Folder,
}

impl Loop {
    /// A loop device of this size. `None`, with the reason printed, if the machine offers no loop device.
    ///
    /// # Panics
    ///
    /// If the temporary file cannot be made.
    pub fn new(bytes: u64) -> Option<Loop> {
        let folder = Folder::new();
        let image = folder.join("image");
        let file = File::create(&image).expect("a temporary file");
        file.set_len(bytes).expect("a temporary file");
        let made = Command::new("losetup")
            .args(["--find", "--show", "--partscan"])
            .arg(&image)
            .output();
        match made {
            Ok(output) if output.status.success() => {
                let device = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
                Some(Loop {
                    device,
                    _folder: folder,
                })
            }
            other => {
                println!("SKIPPED: no loop device: {other:?}");
                None
            }
        }
    }

    /// Takes the device away. Dropping the value does the same.
    pub fn detach(&self) -> bool {
        let done = Command::new("losetup").arg("-d").arg(&self.device).output();
        done.is_ok_and(|output| output.status.success())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.detach();
    }
}

/// Number of tracefs instances of a process.
pub fn instances(process: u32) -> usize {
    let prefix = format!("headtime-{process}-");
    let entries = fs::read_dir("/sys/kernel/tracing/instances");
    entries.map_or(0, |entries| {
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
            .count()
    })
}

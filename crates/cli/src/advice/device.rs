//! Model, serial number and setting of a disk, from sysfs and udev.

use super::commands::Device;
use headtime_lab::advice::{DiskSetting, today};
use headtime_lab::fault::Fault;
use std::fs;
use std::path::Path;

/// Beginnings of model names whose drives shingle their tracks without saying so (vendors' lists of 2020).
const SHINGLED: [&str; 16] = [
    "ST5000AS",
    "ST6000AS",
    "ST8000AS",
    "ST2000DM008",
    "ST3000DM007",
    "ST4000DM004",
    "ST6000DM003",
    "ST8000DM004",
    "WD20EFAX",
    "WD30EFAX",
    "WD40EFAX",
    "WD60EFAX",
    "WD20EZAZ",
    "WD60EZAZ",
    "DT02ABA",
    "MQ04",
];

impl Device {
    /// Reads a disk's model, serial number and kind. `numbers` has the device's major and minor number.
    pub fn read(name: &str, numbers: (u32, u32)) -> Device {
        Device::below(
            Path::new("/sys/block"),
            Path::new("/run/udev/data"),
            name,
            numbers,
        )
    }

    fn below(sysfs: &Path, udev: &Path, name: &str, (major, minor): (u32, u32)) -> Device {
        let value = |key: &str| text(&sysfs.join(name).join(key)).unwrap_or_default();
        let known = text(&udev.join(format!("b{major}:{minor}"))).unwrap_or_default();
        let serial = known
            .lines()
            .find_map(|line| line.strip_prefix("E:ID_SERIAL="));
        let (model, zoned) = (value("device/model"), value("queue/zoned"));
        let shingled = SHINGLED.iter().any(|start| {
            let words = model.split_whitespace();
            words.into_iter().any(|word| word.starts_with(start))
        });
        let doubt = if value("queue/rotational") == "0" {
            Some(format!(
                "{name} does not rotate, and the model is of a hard disk"
            ))
        } else if !["", "none"].contains(&zoned.as_str()) {
            Some(format!(
                "{name} is a shingled disk ({zoned}), and the model has no zones"
            ))
        } else if shingled {
            Some(format!(
                "{model} is a shingled disk, which moves data by itself, and the model does not"
            ))
        } else {
            None
        };
        Device {
            name: name.to_owned(),
            serial: serial.map(str::to_owned),
            doubt,
            has_depth: sysfs.join(name).join("device/queue_depth").exists(),
        }
    }

    /// Today's setting of the disk. `None` if sysfs does not say, as of a loop device.
    ///
    /// # Errors
    ///
    /// If the disk has a scheduler that is not simulated.
    pub fn today(&self) -> Result<Option<DiskSetting>, Fault> {
        self.today_below(Path::new("/sys/block"))
    }

    fn today_below(&self, sysfs: &Path) -> Result<Option<DiskSetting>, Fault> {
        let value = |key: &str| text(&sysfs.join(&self.name).join(key));
        let (Some(schedulers), Some(depth)) =
            (value("queue/scheduler"), value("device/queue_depth"))
        else {
            return Ok(None);
        };
        let chosen = schedulers
            .split_whitespace()
            .find_map(|name| name.strip_prefix('[')?.strip_suffix(']'));
        let name = chosen.unwrap_or("none");
        let setting = today(&format!("{name}@{depth}")).map_err(|_| {
            Fault::Input(format!(
                "{}: its scheduler {name} is not simulated; name another one in its place, as in --today mq-deadline@{depth}",
                self.name
            ))
        });
        setting.map(Some)
    }
}

/// A file's text without blanks around it.
fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_testkit::Folder;

    fn device(files: &[(&str, &str)]) -> (Folder, Device) {
        let folder = Folder::new();
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let device = Device::below(&folder, &folder.join("udev"), "sdb", (8, 16));
        (folder, device)
    }

    #[test]
    fn a_disk_has_its_serial_number_and_todays_setting() {
        let (folder, device) = device(&[
            ("sdb/queue/rotational", "1\n"),
            ("sdb/queue/zoned", "none\n"),
            ("sdb/queue/scheduler", "none [mq-deadline] kyber\n"),
            ("sdb/device/queue_depth", "16\n"),
            ("sdb/device/model", "ST18000NM000J   \n"),
            (
                "udev/b8:16",
                "S:disk/by-id/x\nE:ID_SERIAL=ST18000NM000J-2TV103_ZR5\n",
            ),
        ]);
        assert_eq!(device.serial.as_deref(), Some("ST18000NM000J-2TV103_ZR5"));
        assert_eq!(device.doubt, None);
        let today = device.today_below(&folder).unwrap().unwrap();
        assert_eq!(today.to_string(), "mq-deadline, 16 commands in the drive");
    }

    #[test]
    fn the_answer_holds_for_no_disk_that_is_shingled_or_does_not_rotate() {
        for (key, value, problem) in [
            (
                "sdb/queue/zoned",
                "host-managed",
                "is a shingled disk (host-managed)",
            ),
            (
                "sdb/device/model",
                "WDC WD40EFAX-68JH4N0",
                "moves data by itself",
            ),
            ("sdb/queue/rotational", "0", "does not rotate"),
        ] {
            let (_folder, device) = device(&[(key, value)]);
            let doubt = device.doubt.unwrap();
            assert!(doubt.contains(problem), "{doubt}");
        }
    }

    #[test]
    fn a_device_without_a_queue_has_no_setting() {
        let (folder, device) = device(&[("sdb/queue/rotational", "1")]);
        assert_eq!(device.today_below(&folder).unwrap(), None);
        let (folder, device) = self::device(&[
            ("sdb/queue/scheduler", "[kyber]"),
            ("sdb/device/queue_depth", "32"),
        ]);
        let error = device.today_below(&folder).unwrap_err().to_string();
        assert!(
            error.contains("sdb: its scheduler kyber is not simulated"),
            "{error}"
        );
    }
}

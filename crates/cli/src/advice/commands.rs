//! Commands and files that set a recommendation.

use headtime_lab::advice::{DiskSetting, Role};
use headtime_sched::Class;
use headtime_units::Bytes;

/// Disk of the advice, as sysfs calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name under `/sys/block`, such as `sdb`.
    pub name: String,
    /// Serial number as udev calls it, if known.
    pub serial: Option<String>,
    /// Reason why the advice does not hold for this disk, if there is one.
    pub doubt: Option<String>,
    /// True if the number of commands in the drive can be set, as of a SATA or SAS disk.
    pub has_depth: bool,
}

impl Default for Device {
    fn default() -> Device {
        Device {
            name: "sdX".to_owned(),
            serial: None,
            doubt: None,
            has_depth: true,
        }
    }
}

/// File of the rule that keeps a setting over reboots. The rule runs after 60-persistent-storage.rules, which sets ID_SERIAL.
const RULES: &str = "/etc/udev/rules.d/99-headtime.rules";

/// Values of sysfs that a setting has, below the disk's directory.
fn values(setting: &DiskSetting, device: &Device) -> Vec<(&'static str, String)> {
    let mut values = vec![("queue/scheduler", setting.scheduler_name())];
    if device.has_depth {
        values.push(("device/queue_depth", setting.depth.to_string()));
    }
    if let Some(Bytes(bytes)) = setting.read_ahead {
        values.push(("queue/read_ahead_kb", (bytes >> 10).to_string()));
    }
    values
}

/// Shell command that sets a disk.
pub fn set(setting: &DiskSetting, device: &Device) -> String {
    let one =
        |(key, value): (&str, String)| format!("echo {value} > /sys/block/{}/{key}", device.name);
    values(setting, device)
        .into_iter()
        .map(one)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Shell command that keeps the setting over reboots.
pub fn keep(setting: &DiskSetting, device: &Device) -> String {
    let is_plain = |serial: &&str| {
        serial
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c))
    };
    let serial = device
        .serial
        .as_deref()
        .filter(is_plain)
        .unwrap_or("SERIAL");
    let one = |(key, value): (&str, String)| format!(", ATTR{{{key}}}=\"{value}\"");
    let attributes: String = values(setting, device).into_iter().map(one).collect();
    format!(
        "echo 'ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", ENV{{ID_SERIAL}}==\"{serial}\"{attributes}' > {RULES}"
    )
}

/// Shell command that goes back to today's setting.
pub fn undo(today: &DiskSetting, device: &Device) -> String {
    format!("rm -f {RULES}; {}", set(today, device))
}

/// Configuration of a Headtime server in front of the disk. Each role has an export.
pub fn configuration(
    setting: &DiskSetting,
    roles: &[Role],
    profile: &str,
    device: &Device,
) -> String {
    let name = &device.name;
    let mut text = format!(
        "[[disk]]\nname = \"{name}\"\ndevice = \"/dev/{name}\"\nscheduler = \"{}\"\ndepth = {}\n",
        setting.scheduler, setting.depth
    );
    if setting.gate.to_string() != "depth" {
        text.push_str(&format!("gate = \"{}\"\n", setting.gate));
    }
    text.push_str(&format!("belief = \"{profile}\"\n"));
    let mut names: Vec<String> = Vec::new();
    for role in roles {
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = role.name.chars().map(word).collect();
        let name = match name.trim_matches('-') {
            "" => "clients".to_owned(),
            name => name.to_owned(),
        };
        let alike = names.iter().filter(|other| **other == name).count();
        names.push(name.clone());
        let name = match alike {
            0 => name,
            more => format!("{name}-{}", more + 1),
        };
        text.push_str(&format!("\n[[disk.export]]\nname = \"{name}\"\n"));
        if role.class != Class::default() {
            text.push_str(&format!("class = \"{}\"\n", role.class));
        }
    }
    text.push_str("\n[listen]\nnbd = \"unix:headtime.sock\"\ncontrol = \"unix:control.sock\"\n");
    text
}

//! Made-up loads for users without a recording.

use headtime_config::{Place, Table};

/// A made-up load.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in a line.
    pub idea: &'static str,
    /// Clients, as a scenario without a drive.
    text: &'static str,
}

/// All mixes.
pub const MIXES: [Mix; 5] = [
    Mix {
        name: "vm+scrub",
        idea: "Four virtual machines read 16 KiB at random beside a scrub with three reads of 1 MiB in the drive",
        text: r#"
[engine]
merge_max = "1MiB"
[[workload]]
name = "vm"
processes = 4
size = "16KiB"
think = "20ms"
[[workload]]
name = "scrub"
class = "idle"
sequential_share = 1.0
size = "1MiB"
outstanding = 3
first = "beginning"
"#,
    },
    Mix {
        name: "backup+web",
        idea: "A backup reads files in sequence beside 25 small requests a second of a web server, a tenth of them writes",
        text: r#"
[[workload]]
name = "web"
size = "4KiB/50:16KiB/40:64KiB/10"
gap = "exponential(40ms)"
outstanding = 1000
read_share = 0.9
places = "zipf(0.9)"
[[workload]]
name = "backup"
class = "idle"
sequential_share = 0.98
size = "256KiB"
outstanding = 2
"#,
    },
    Mix {
        name: "parallel-readers",
        idea: "Six programs each read a file of their own in sequence, 128 KiB at a time",
        text: r#"
[[workload]]
name = "readers"
processes = 6
sequential_share = 1.0
size = "128KiB"
think = "100us"
"#,
    },
    Mix {
        name: "rebuild",
        idea: "A rebuild reads the disk in sequence with four reads of 512 KiB in the drive, beside eight clients of a database",
        text: r#"
[[workload]]
name = "database"
processes = 8
size = "8KiB"
think = "exponential(50ms)"
read_share = 0.7
[[workload]]
name = "rebuild"
class = "idle"
sequential_share = 1.0
size = "512KiB"
outstanding = 4
first = "beginning"
"#,
    },
    Mix {
        name: "deadline",
        idea: "A nightly job reads and writes in sequence and must end in time, beside two programs that copy files and three random readers",
        text: r#"
[[workload]]
name = "job"
class = "real-time"
sequential_share = 0.95
size = "128KiB"
read_share = 0.8
writes_apart = true
think = "1ms"
[[workload]]
name = "copies"
processes = 2
sequential_share = 0.98
size = "256KiB"
read_share = 0.5
writes_apart = true
[[workload]]
name = "readers"
processes = 3
size = "16KiB"
think = "10ms"
"#,
    },
];

/// Length of a simulated mix. The warm-up is longer than the 10.5 s in which `bfq` raises new queues, which says nothing of a disk in use.
const RUN: &str = "\n[run]\nwarm_up = \"15s\"\nduration = \"75s\"\n";

impl Mix {
    /// Finds a mix by its name.
    pub fn find(name: &str) -> Option<&'static Mix> {
        MIXES.iter().find(|mix| mix.name == name)
    }

    /// Table and place of the mix, without a drive.
    ///
    /// # Panics
    ///
    /// Never: each mix is TOML, which a test checks.
    pub fn table(&self) -> (Table, Place) {
        let name = format!("mix {}", self.name);
        let text = format!("title = \"{}\"{}{RUN}", self.idea, self.text);
        let table = Table::parse(&name, &text).expect("a mix is TOML");
        (table, Place::line(&name, 1))
    }
}

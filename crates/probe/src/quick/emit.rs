//! Results in the formats of other programs, separated into measurements and predictions.

use super::{Quick, RandomReads};

/// Values for other programs.
struct Emitted<'a> {
    deepest: &'a RandomReads,
    fastest: f64,
    slowest: f64,
    small: f64,
}

/// Text for the number of commands at a time.
fn at_a_time(depth: u16) -> String {
    match depth {
        1 => "one at a time".to_owned(),
        depth => format!("{depth} at a time"),
    }
}

impl Quick {
    /// Returns the results that other programs' settings need; `None` if one is missing.
    fn emitted(&self) -> Option<Emitted<'_>> {
        let [fastest, slowest] = self.fastest_and_slowest()?;
        Some(Emitted {
            deepest: self.deepest()?,
            fastest,
            slowest,
            small: self.small_sequential?,
        })
    }

    /// Two keys of Ceph's mClock scheduler for an OSD on this disk, as a section of ceph.conf. `None` if the necessary results are missing.
    ///
    /// Ceph takes the first for random writes of 4 KiB in a second, and the second for bytes a second.
    pub fn to_ceph(&self) -> Option<String> {
        let emitted = self.emitted()?;
        let (iops, depth) = (emitted.deepest.iops, at_a_time(emitted.deepest.depth));
        let mb = |rate: f64| rate / 1e6;
        Some(format!(
            "# {}, by headtime {}\n\
             # measured: {iops:.1} random reads of 4 KiB a second, {depth}\n\
             # measured: {:.1} MB/s sequential reads where the disk is fastest, {:.1} where it is slowest\n\
             # predicted: random writes are taken to be as many as reads, and to cost the OSD no other\n\
             # writes; `ceph tell osd.ID bench` measures what BlueStore makes of them\n\
             # ID is the OSD's number\n\
             [osd.ID]\n\
             osd_mclock_max_capacity_iops_hdd = {iops:.1}\n\
             osd_mclock_max_sequential_bandwidth_hdd = {:.0}\n",
            self.drive,
            env!("CARGO_PKG_VERSION"),
            mb(emitted.fastest),
            mb(emitted.slowest),
            emitted.fastest,
        ))
    }

    /// A line for the kernel's `io.cost.model`, and remarks about the line, since the kernel takes no comments. `device` is the block
    /// device's `MAJ:MIN`. `None` if the necessary results are missing.
    pub fn to_iocost(&self, device: &str) -> Option<(String, Vec<String>)> {
        let emitted = self.emitted()?;
        let (bps, random, small) = (emitted.fastest, emitted.deepest.iops, emitted.small);
        let depth = at_a_time(emitted.deepest.depth);
        let line = format!(
            "{device} ctrl=user model=linear \
             rbps={bps:.0} rseqiops={small:.0} rrandiops={random:.0} \
             wbps={bps:.0} wseqiops={small:.0} wrandiops={random:.0}\n"
        );
        let notes = vec![
            format!(
                "measured: rbps (sequential reads where the disk is fastest; {:.1} MB/s where it is slowest), \
                 rseqiops and rrandiops (reads of 4 KiB, {depth})",
                emitted.slowest / 1e6
            ),
            "predicted: wbps, wseqiops and wrandiops, writes being taken to cost what reads do"
                .to_owned(),
        ];
        Some((line, notes))
    }
}

#[cfg(test)]
mod tests {
    use crate::quick::{QuickOptions, quick};
    use crate::{Modelled, Quick};
    use headtime_disk::profile::by_name;

    fn learned() -> Quick {
        let mut probe = Modelled::new(&by_name("wd5000aaks").unwrap(), 1);
        let options = QuickOptions {
            time: QuickOptions::TIME_MIN,
            seed: 1,
        };
        quick(&mut probe, &options, &mut |_| {})
    }

    #[test]
    fn ceph_gets_its_two_keys_in_its_units() {
        let quick = learned();
        let text = quick.to_ceph().unwrap();
        let value = |key: &str| -> f64 {
            let (_, behind) = text.split_once(&format!("\n{key} = ")).unwrap();
            behind.lines().next().unwrap().parse().unwrap()
        };
        let iops = value("osd_mclock_max_capacity_iops_hdd");
        assert!((iops - quick.random[1].iops).abs() < 0.06);
        let bandwidth = value("osd_mclock_max_sequential_bandwidth_hdd");
        assert!((bandwidth - quick.fastest_and_slowest().unwrap()[0]).abs() < 0.6);
        assert!(text.contains("# measured: ") && text.contains("# predicted: "));
    }

    #[test]
    fn the_kernel_gets_a_line_of_its_six_rates() {
        let quick = learned();
        let (line, notes) = quick.to_iocost("8:16").unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..3], ["8:16", "ctrl=user", "model=linear"]);
        let keys: Vec<&str> = words[3..]
            .iter()
            .map(|word| {
                let (key, value) = word.split_once('=').unwrap();
                assert!(value.parse::<u64>().unwrap() > 0, "{word}");
                key
            })
            .collect();
        let expected = [
            "rbps",
            "rseqiops",
            "rrandiops",
            "wbps",
            "wseqiops",
            "wrandiops",
        ];
        assert_eq!(keys, expected);
        assert!(line.ends_with('\n') && line.lines().count() == 1);
        assert!(notes[0].starts_with("measured") && notes[1].starts_with("predicted"));
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let mut quick = learned();
        quick.random.clear();
        assert_eq!((quick.to_ceph(), quick.to_iocost("8:16")), (None, None));
    }
}

mod extents;
mod files;
mod schemes;
mod tracks;

use crate::*;
use headtime_disk::profile::{
    FirmwarePolicy, Interpolation, Order, Profile, ReadAhead, RequestedData, SeekCurve, Skew,
    Sparing, WriteBack,
};
use headtime_units::Nanos;
use proptest::prelude::*;
use std::io;

#[test]
fn the_measured_drives_import_with_their_capacities() {
    let Some(data) = headtime_testkit::data("disksim-valid") else {
        return;
    };
    for (name, blocks, room) in [
        ("atlas10k", 17_938_986, 17_966_953),
        ("cheetah9LP", 17_783_240, 17_918_387),
        ("barracuda", 4_110_000, 4_217_670),
        ("ibm18es", 17_916_240, 18_033_753),
        ("hp_c2247a", 2_054_864, 2_054_864),
    ] {
        let import = import(&data.join(format!("{name}.parv")), &Choice::default())
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(import.notes, [""; 0], "{name}");
        // All layouts except one have more room than the drives offer.
        assert_eq!(import.warnings.len(), usize::from(room > blocks), "{name}");
        for warning in import.warnings {
            let words = format!(
                "`Block count` is {blocks}, but the layout has room for {room} blocks; the block count \
                 is believed, and the last {} blocks stay unused",
                room - blocks
            );
            assert!(warning.contains(&words), "{name}: {warning}");
        }
        assert_eq!(import.profile.geometry.capacity.get(), blocks, "{name}");
    }
}

/// A run with everything in it that a drive needs, in one file of its own words but for the names
/// of parameters.
const RUN: &str = "
disksim_global Global { Init Seed = 42, Stat definition file = statdefs }
# a comment = { [ , ignored
disksim_bus OUTER { type = 1, Arbitration type = 1, Arbitration time = 0.5,
  Read block transfer time = 0.001, Write block transfer time = 0.9, Print stats = 0 }
disksim_bus INNER { type = 1, Arbitration type = 1, Arbitration time = 0.25,
  Read block transfer time = 0.125, Write block transfer time = 0.5, Print stats = 0 }
disksim_ctlr CTLR { type = 1, Scale for delays = 0.0, Bulk sector transfer time = 0.25,
  Maximum queue length = 0, Print stats = 1 }
source drive.diskspecs
instantiate [ bus0 ] as OUTER
instantiate [ bus1 ] as INNER
instantiate [ ctlr0 ] as CTLR
instantiate [ disk0, disk1 ] as DRIVE
topology disksim_iodriver driver0 [
  disksim_bus bus0 [ disksim_ctlr ctlr0 [ disksim_bus bus1 [ disksim_disk disk0 [] ] ] ]
]
";

const SPECS: &str = "
disksim_disk DRIVE {
  Model = source drive.model,
  Per-request overhead time = 0.5,
  Time scale for overheads = 2.0,
  Bulk sector transfer time = 0.0625,
  Hold bus entire read xfer = 1, Hold bus entire write xfer = 0,
  Allow almost read hits = 1, Allow sneaky full read hits = 0,
  Allow sneaky partial read hits = 0, Allow sneaky intermediate read hits = 0,
  Allow read hits on write data = 0, Allow write prebuffering = 1,
  Preseeking level = 2, Never disconnect = 1, Print stats = 1,
  Avg sectors per cylinder = 20, Max queue length = 4,
  Scheduler = disksim_ioqueue { Scheduling policy = 8, Cylinder mapping strategy = 0 },
  Number of buffer segments = 4, Maximum number of write segments = 2,
  Segment size (in blks) = 16, Use separate write segment = 1,
  Low (write) water mark = 0.25, High (read) water mark = 0.75,
  Set watermark by reqsize = 0, Calc sector by sector = 1, Enable caching in buffer = 1,
  Buffer continuous read = 4, Minimum read-ahead (blks) = 1, Maximum read-ahead (blks) = 12,
  Read-ahead over requested = -1, Read-ahead on idle hit = 1, Read any free blocks = 1,
  Fast write level = 1, Immediate buffer read = 1, Immediate buffer write = 0,
  Combine seq writes = 0, Stop prefetch in sector = 1, Disconnect write if seek = 1,
  Write hit stop prefetch = 0, Read directly to buffer = 0, Immed transfer partial hit = 0,
  Read hit over. after read = 0.01, Read hit over. after write = 0.02,
  Read miss over. after read = 0.03, Read miss over. after write = 0.04,
  Write hit over. after read = 0.05, Write hit over. after write = 0.06,
  Write miss over. after read = 0.07, Write miss over. after write = 0.08,
  Read completion overhead = 0.09, Write completion overhead = 0.10,
  Data preparation overhead = 0.11, First reselect overhead = 0.12,
  Other reselect overhead = 0.13, Read disconnect afterread = 0.14,
  Read disconnect afterwrite = 0.15, Write disconnect overhead = 0.16,
  Extra write disconnect = 1, Extradisc command overhead = 0.17,
  Extradisc disconnect overhead = 0.18, Extradisc inter-disconnect delay = 0.19,
  Extradisc 2nd disconnect overhead = 0.20, Extradisc seek delta = 0.21,
  Minimum seek delay = 0.22
}
";

const MODEL: &str = "
dm_disk DRIVE_model {
  Number of data surfaces = 2,
  Number of cylinders = 10,
  Block count = 150,
  Layout Model = dm_layout_g1 {
    LBN-to-PBN mapping scheme = 1,
    Sparing scheme used = 9,
    Rangesize for sparing = 2,
    Zones = [
      dm_layout_g1_zone {
        First cylinder number = 0, Last cylinder number = 4, Blocks per track = 10,
        Offset of first block = 1.000000, Empty space at zone front = 3,
        Skew for track switch = 2.9, Skew for cylinder switch = 4,
        Number of spares = 4, slips = [ 30, 7 ], defects = [ 50, 99 ]
      },
      dm_layout_g1_zone {
        First cylinder number = 6, Last cylinder number = 9, Blocks per track = 8,
        Offset of first block = 0, Empty space at zone front = 0,
        Skew units = revolutions,
        Skew for track switch = 0.25, Skew for cylinder switch = 1.5,
        Number of spares = 0, slips = [], defects = []
      }
    ]
  },
  Mechanical Model = dm_mech_g1 {
    Access time type = trackSwitchPlusRotation,
    Seek type = extracted,
    Full seek curve = drive.seek,
    Add. write settling delay = 0.5,
    Head switch time = 0.75,
    Rotation speed (in rpms) = 6000,
    Percent error in rpms = 0.0
  }
}
";

const SEEK: &str = "Seek distances measured: 3\n1, 1.00000\n4,\t2.0, 0.01\n9, 3.5\n";

/// Files of a run. A test may change them.
struct Files {
    run: String,
    specs: String,
    model: String,
    seek: String,
}

impl Files {
    fn new() -> Files {
        Files {
            run: RUN.to_string(),
            specs: SPECS.to_string(),
            model: MODEL.to_string(),
            seek: SEEK.to_string(),
        }
    }

    fn beside(&self, name: &str) -> io::Result<String> {
        match name {
            "drive.diskspecs" => Ok(self.specs.clone()),
            "drive.model" => Ok(self.model.clone()),
            "drive.seek" => Ok(self.seek.clone()),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    }

    fn import(&self) -> Result<Import, ImportError> {
        import_text("My drive.parv", &self.run, &Choice::default(), |name| {
            self.beside(name)
        })
    }

    /// Replaces in whichever file has it, which exactly one does.
    fn with(mut self, from: &str, to: &str) -> Files {
        let texts = [
            &mut self.run,
            &mut self.specs,
            &mut self.model,
            &mut self.seek,
        ];
        let mut times = 0;
        for text in texts {
            times += text.matches(from).count();
            *text = text.replace(from, to);
        }
        assert_eq!(times, 1, "{from} occurs {times} times");
        self
    }

    fn error(&self) -> String {
        self.import().unwrap_err().to_string()
    }
}

#[test]
fn every_parameter_reaches_the_profile() {
    let import = Files::new().import().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(import.notes, [""; 0]);
    let profile = import.profile;
    let us = Nanos::from_micros;
    assert_eq!(
        (profile.name.as_str(), profile.model.as_str()),
        ("my-drive", "DRIVE")
    );
    assert_eq!(profile.geometry.capacity.get(), 150);
    assert_eq!(profile.rotation.turn(), us(10_000));
    assert_eq!(profile.layout.order, Order::Serpentine);
    assert_eq!(profile.layout.sparing, Sparing::ZoneEnd);
    let [first, second] = profile.layout.zones.as_slice() else {
        panic!()
    };
    assert_eq!(
        (
            first.first_cylinder,
            first.last_cylinder,
            first.sectors_per_track
        ),
        (0, 4, 10)
    );
    assert_eq!((first.reserved, first.spares), (3, 4));
    assert_eq!(
        (first.slips.as_slice(), first.remaps.as_slice()),
        (&[7, 30][..], &[(50, 99)][..])
    );
    let skews = [first.offset, first.track_skew, first.cylinder_skew];
    assert_eq!(skews, [1, 2, 4].map(Skew::Sectors));
    let skews = [second.offset, second.track_skew, second.cylinder_skew];
    assert_eq!(skews, [0.0, 0.25, 0.5].map(Skew::Turns));
    let table = vec![(1, us(1000)), (4, us(2000)), (9, us(3500))];
    let interpolation = Interpolation::Linear;
    assert_eq!(
        profile.seek.read,
        SeekCurve::Table {
            points: table,
            interpolation
        }
    );
    assert_eq!(
        (profile.seek.write_settle, profile.seek.head_switch),
        (us(500).into(), us(750))
    );
    assert!(profile.access.zero_latency_read && !profile.access.zero_latency_write);

    let cache = &profile.cache;
    assert_eq!(
        (cache.segments, cache.segment_sectors, cache.write_segments),
        (4, 16, 2)
    );
    assert_eq!(
        (cache.read_ahead, cache.requested_data),
        (ReadAhead::NextTrack, RequestedData::Dropped)
    );
    assert_eq!((cache.read_ahead_min, cache.read_ahead_max), (1, 12));
    assert_eq!(cache.write_back, WriteBack::Appending);
    assert_eq!((cache.write_low_water, cache.read_high_water), (0.25, 0.75));
    let yes = [
        cache.enabled,
        cache.dedicated_write_segment,
        cache.read_ahead_on_idle_hit,
        cache.read_free_sectors,
        cache.almost_read_hits,
        cache.write_prebuffering,
        cache.stop_read_ahead_in_sector,
        cache.disconnect_write_in_seek,
    ];
    assert_eq!(yes, [true; 8]);
    let no = [
        cache.sneaky_full_read_hits,
        cache.sneaky_partial_read_hits,
        cache.sneaky_intermediate_read_hits,
        cache.read_hits_on_write_data,
        cache.combine_sequential_writes,
        cache.write_hit_stops_read_ahead,
        cache.read_direct_to_buffer,
        cache.send_partial_hit_at_once,
        cache.water_by_request,
    ];
    assert_eq!(no, [false; 9]);

    // Overheads are scaled by two; the bus is not.
    let overhead = &profile.overhead;
    let fields = overhead.durations().map(|(_, time)| time);
    let expected = [
        1000, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240, 260, 280, 300, 320, 440,
    ];
    assert_eq!(fields, expected.map(us));
    let early = overhead.early_write_disconnect.unwrap();
    let fields = early.durations().map(|(_, time)| time);
    assert_eq!(fields, [340, 360, 380, 400, 420].map(us));

    // The slowest way counts: the controller toward the host, the outer bus toward the drive.
    let bus = &profile.bus;
    assert_eq!(bus.interface_sector, Nanos::from_nanos(62_500));
    assert_eq!(
        (bus.read_sector, bus.write_sector, bus.arbitration),
        (us(250), us(900), us(250))
    );
    assert!(bus.hold_for_read && !bus.hold_for_write && bus.never_disconnect);
    assert_eq!(profile.queue.depth, 4);
    let sptf = FirmwarePolicy::Sptf {
        margin: Nanos::ZERO,
        age_cap: None,
    };
    assert_eq!(profile.queue.policy, sptf);
    assert!(profile.noise.is_off());
}

/// As on two of DiskSim's validated drives, whose writes settle sooner than the reads of the seek table.
#[test]
fn a_negative_write_settling_delay_is_carried_and_read_back() {
    let settle = |millis: &str| {
        let delay = format!("Add. write settling delay = {millis}");
        Files::new().with("Add. write settling delay = 0.5", &delay)
    };
    let profile = settle("-0.483000").import().unwrap().profile;
    assert_eq!(profile.seek.write_settle.as_nanos(), -483_000);
    let text = profile.to_toml();
    assert!(text.contains("\nwrite_settle = \"-483us\"\n"), "{text}");
    assert_eq!(Profile::from_toml("again", &text), Ok(profile));
    assert_eq!(
        settle("-4001").error(),
        "drive.model:30: Add. write settling delay: -4001 is not allowed; allowed is a number from \
         -4000 to 4000"
    );
    assert_eq!(
        Profile::from_toml("f", &text.replace("-483us", "-4.5s"))
            .unwrap_err()
            .to_string(),
        "f:41: seek.write_settle: -4.5s is not allowed; allowed is -4s to 4s"
    );
}

#[test]
fn names_what_is_not_supported() {
    for (from, to, error) in [
        (
            "mapping scheme = 1",
            "mapping scheme = 3",
            "drive.model:7: LBN-to-PBN mapping scheme: 3 is not allowed; allowed is an integer from 0 \
             to 2",
        ),
        (
            "scheme used = 9",
            "scheme used = 11",
            "drive.model:8: Sparing scheme used: 11 is not allowed; allowed is an integer from 0 to 10",
        ),
        (
            "Layout Model = dm_layout_g1",
            "Layout Model = dm_layout_g3",
            "drive.model:6: dm_layout_g3: not supported; dm_layout_g1, dm_layout_g2 and dm_layout_g4 are",
        ),
        (
            "dm_mech_g1",
            "dm_mech_g2",
            "drive.model:26: dm_mech_g2: not supported; only dm_mech_g1 is",
        ),
        (
            "trackSwitchPlusRotation",
            "none",
            "drive.model:27: Access time type: none is not allowed; allowed are \
             trackSwitchPlusRotation, averageRotation and constant",
        ),
        (
            "Seek type = extracted",
            "Seek type = magic",
            "drive.model:28: Seek type: magic is not supported; supported are extracted, hpl, \
             hplplus10, curve, linear and constant",
        ),
        (
            "Skew units = revolutions",
            "Skew units = degrees",
            "drive.model:20: Skew units: degrees is not allowed; allowed are sectors and revolutions",
        ),
    ] {
        assert_eq!(Files::new().with(from, to).error(), error);
    }
    let none = Files::new().with("disksim_disk DRIVE {", "disksim_simpledisk DRIVE {");
    assert_eq!(
        none.error(),
        "drive.diskspecs:2: disksim_disk: disksim_simpledisk DRIVE is not supported; only a \
         disksim_disk is"
    );
}

#[test]
fn says_where_a_value_is_wrong() {
    for (from, to, error) in [
        (
            "Number of cylinders = 10",
            "Number of cylinders = -10",
            "drive.model:4: Number of cylinders: -10 is not allowed; allowed is an integer from 1 to \
             16777216",
        ),
        (
            "Head switch time = 0.75",
            "Head switch time = -0.75",
            "drive.model:31: Head switch time: -0.75 is not allowed; allowed is a number from 0 to \
             4000",
        ),
        (
            "Read hit over. after read",
            "Read hit over after read",
            "drive.diskspecs:2: Read hit over. after read: missing in disksim_disk DRIVE",
        ),
        (
            "Skew for track switch = 2.9",
            "Skew for track swich = 2.9",
            "drive.model:14: Skew for track swich: unknown parameter of dm_layout_g1_zone; did you mean \
             `Skew for track switch`?",
        ),
        (
            "Low (write) water mark = 0.25",
            "Low (write) water mark = NaN",
            "drive.diskspecs:16: Low (write) water mark: NaN is not allowed; allowed is a number from \
             0 to 1",
        ),
        (
            "slips = [ 30, 7 ]",
            "slips = [ 30, -7 ]",
            "drive.model:15: slips: -7 is not allowed; allowed are integers from 0 on",
        ),
        (
            "defects = [ 50, 99 ]",
            "defects = [ 50 ]",
            "drive.model:15: defects: an odd number of places; they are pairs of from and to",
        ),
        (
            "First cylinder number = 6",
            "First cylinder number = 4",
            "drive.model: layout.zones[1].cylinders: [4, 9] overlaps zone 0, which ends at cylinder \
             4; zones are listed in order and share no cylinder",
        ),
        (
            "4,\t2.0, 0.01",
            "4 2.0",
            "drive.seek:3: `4 2.0` should be `cylinders, milliseconds`",
        ),
        (
            "9, 3.5",
            "4, 3.5",
            "drive.seek:4: distance 4 after 4; distances go up, each once",
        ),
        (
            "9, 3.5",
            "9, -3.5",
            "drive.seek:4: -3.5 ms is not allowed; allowed is 0 to 4000",
        ),
        (
            "Model = source drive.model",
            "Model = source lost.model",
            "drive.diskspecs:3: names a file that cannot be read: lost.model: no such file",
        ),
        (
            "Full seek curve = drive.seek",
            "Full seek curve = lost.seek",
            "drive.model:29: names a file that cannot be read: lost.seek: no such file",
        ),
        (
            "source drive.diskspecs",
            "source drive.seek",
            "drive.seek:1: found `measured:`, expected `{` after `Seek`",
        ),
        (
            "Print stats = 1,\n  Avg",
            "Print stats = 1\n  Avg",
            "drive.diskspecs:12: found `=`, expected `,` or `}` after a value",
        ),
    ] {
        assert_eq!(Files::new().with(from, to).error(), error);
    }
}

/// Cut off anywhere, every file gives an error or is complete.
#[test]
fn truncated_files_are_errors() {
    for cut in 0..MODEL.trim_end().len() {
        let mut files = Files::new();
        files.model.truncate(cut);
        assert!(files.import().is_err(), "model cut at {cut}");
    }
    for cut in 0..SPECS.trim_end().len() {
        let mut files = Files::new();
        files.specs.truncate(cut);
        assert!(files.import().is_err(), "specs cut at {cut}");
    }
    let mut files = Files::new();
    files.seek = "Seek distances measured: 3\n1, 1.0\n".to_string();
    let import = files.import().unwrap();
    assert_eq!(
        import.warnings[0],
        "drive.seek: has 1 distances, but announces 3; is it complete?"
    );
    files.seek.truncate(27);
    assert_eq!(files.error(), "drive.seek:1: there are no seek times in it");
}

#[test]
fn notes_what_it_takes_differently() {
    let notes = |from: &str, to: &str| Files::new().with(from, to).import().unwrap().notes;
    assert_eq!(
        notes("slips = [ 30, 7 ]", "slips = [ 1, 2, 3, 4, 5, 30 ]"),
        [
            "zone 0: 2 slips have no spare to slip into and were left out",
            "zone 0: 1 defects are not moved to a spare place and were left out"
        ]
    );
    // The largest number once overflowed on the way.
    assert_eq!(
        notes(
            "slips = [ 30, 7 ]",
            "slips = [ 18446744073709551615, 30, 7 ]"
        ),
        ["zone 0: 1 slips have no spare to slip into and were left out"]
    );
    assert_eq!(
        notes("defects = [ 50, 99 ]", "defects = [ 50, 51 ]"),
        ["zone 0: 1 defects are not moved to a spare place and were left out"]
    );
    assert_eq!(
        notes("Percent error in rpms = 0.0", "Percent error in rpms = 0.5"),
        [
            "drive.model: `Percent error in rpms` is 0.5; the drive turns at its nominal speed, as in \
          DiskSim (noise.speed_ppm varies it)"
        ]
    );
    assert_eq!(
        notes("Max queue length = 4", "Max queue length = 0"),
        ["drive.diskspecs:12: `Max queue length` is 0; taken as 256"]
    );
    assert_eq!(
        notes("Scheduling policy = 8", "Scheduling policy = 21"),
        [
            "drive.diskspecs:13: `Scheduling policy` is 21, for which drives here have no firmware; taken \
             as SPTF"
        ]
    );
    assert_eq!(
        notes(
            "Bulk sector transfer time = 0.0625",
            "Bulk sector transfer time = -0.015"
        ),
        ["drive.diskspecs:6: `Bulk sector transfer time` is -0.015; taken as 0"]
    );
    assert_eq!(
        notes(
            "Data preparation overhead = 0.11",
            "Data preparation overhead = -0.11"
        ),
        ["drive.diskspecs:28: `Data preparation overhead` is -0.11; taken as 0"]
    );
    assert_eq!(
        notes(
            "Maximum read-ahead (blks) = 12",
            "Maximum read-ahead (blks) = 512"
        ),
        [
            "drive.diskspecs:18: `Maximum read-ahead (blks)` is 512, more than `Segment size (in blks)`; \
             taken as 16"
        ]
    );
    assert_eq!(
        notes("trackSwitchPlusRotation", "averageRotation"),
        [
            "drive.model:27: `Access time type` is averageRotation, which is half a turn in place of each \
             wait for a sector; taken as trackSwitchPlusRotation, with seeks and rotation from the other \
             parameters"
        ]
    );
    assert_eq!(
        notes(
            "Enable caching in buffer = 1",
            "Enable caching in buffer = 0"
        ),
        [
            "`Enable caching in buffer` is 0; reading ahead, fast writes and free blocks were left out"
        ]
    );
    assert_eq!(
        notes(
            "Allow sneaky full read hits = 0",
            "Allow sneaky full read hits = 1"
        ),
        ["`Hold bus entire read xfer` is 1; sneaky read hits were left out"]
    );
}

/// An unknown parameter that resembles no missing one belongs to another version of the simulator, and does no harm.
#[test]
fn unknown_parameters_that_replace_nothing_are_noted() {
    let notes = |from: &str, to: &str| Files::new().with(from, to).import().unwrap().notes;
    assert_eq!(
        notes(
            "  Minimum seek delay = 0.22",
            "  Minimum seek delay = 0.22, Minimum seek delai = 1"
        ),
        [
            "drive.diskspecs:34: `Minimum seek delai`: unknown parameter of disksim_disk, passed over"
        ]
    );
    assert_eq!(
        notes(
            "Head switch time",
            "Servo bursts = [ 1, [ 2 ] ], Head switch time"
        ),
        ["drive.model:31: `Servo bursts`: unknown parameter of dm_mech_g1, passed over"]
    );
}

/// A disk cut down for a test, with the cache of the whole one.
#[test]
fn segments_larger_than_the_disk_are_cut_and_noted() {
    let files = Files::new()
        .with(
            "Segment size (in blks) = 16",
            "Segment size (in blks) = 200",
        )
        .with(
            "Maximum read-ahead (blks) = 12",
            "Maximum read-ahead (blks) = 180",
        );
    let import = files.import().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        import.notes,
        ["`Segment size (in blks)` is 200, more than the disk has; taken as 150"]
    );
    let cache = &import.profile.cache;
    assert_eq!((cache.segment_sectors, cache.read_ahead_max), (150, 150));
}

#[test]
fn every_type_of_seek_curve_imports() {
    let seek = |with: &str| {
        let files = Files::new().with(
            "Seek type = extracted,\n    Full seek curve = drive.seek",
            with,
        );
        files
            .import()
            .unwrap_or_else(|e| panic!("{e}"))
            .profile
            .seek
            .read
            .clone()
    };
    let us = Nanos::from_micros;
    assert_eq!(
        seek("Seek type = constant, Constant seek time = 5"),
        SeekCurve::Constant(us(5000))
    );
    let three = "Single cylinder seek time = 1, Average seek time = 3, Full strobe seek time = 5";
    let (single, average, full) = (us(1000), us(3000), us(5000));
    assert_eq!(
        seek(&format!("Seek type = curve, {three}")),
        SeekCurve::Curve {
            single,
            average,
            full
        }
    );
    assert_eq!(
        seek(&format!("Seek type = linear, {three}")),
        SeekCurve::Linear {
            single,
            average,
            full
        }
    );
    let hpl = |first| SeekCurve::Hpl {
        split: 5,
        root_base: us(1000),
        root_factor: us(200),
        line_base: us(3000),
        line_factor: us(4),
        first,
    };
    let values = |last| format!("HPL seek equation values = [ 5, 1.0, 0.2, 3.0, 0.004, {last} ]");
    assert_eq!(
        seek(&format!("Seek type = hpl, {}", values("-1.0"))),
        hpl(Vec::new())
    );
    assert_eq!(
        seek(&format!("Seek type = hpl, {}", values("0.5"))),
        hpl(vec![us(500)])
    );
    // A fourth column is the time of writes.
    let dual = Files {
        seek: "1, 1.0, 0.02, 1.25\n4, 2.0, 0.02, 2.25\n".to_string(),
        ..Files::new()
    };
    let import = dual.import().unwrap();
    let table = |points| SeekCurve::Table {
        points,
        interpolation: Interpolation::Linear,
    };
    assert_eq!(
        import.profile.seek.read,
        table(vec![(1, us(1000)), (4, us(2000))])
    );
    assert_eq!(
        import.profile.seek.write,
        Some(table(vec![(1, us(1250)), (4, us(2250))]))
    );
    let partly = Files {
        seek: "1, 1.0, 0.02, 1.25\n4, 2.0, 0.02\n".to_string(),
        ..Files::new()
    };
    assert_eq!(
        partly.import().unwrap().warnings[0],
        "drive.seek: 1 of 2 distances have a time for writes; the others take the line between those"
    );
    let ten = "First ten seek times = [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ]";
    assert_eq!(
        seek(&format!("Seek type = hplplus10, {ten}, {}", values("-1.0"))),
        hpl((1..11).map(|ms| us(ms * 1000)).collect())
    );
}

#[test]
fn a_disk_without_a_run_has_no_bus() {
    let files = Files::new();
    let import = import_text("drive.diskspecs", SPECS, &Choice::default(), |name| {
        files.beside(name)
    })
    .unwrap();
    assert_eq!(
        import.notes,
        ["no bus: sectors take only the drive's own transfer time"]
    );
    assert_eq!(import.profile.bus.sector(true), Nanos::from_nanos(62_500));
}

#[test]
fn a_missing_file_is_named_in_the_error() {
    let error = import(Path::new("no/such/drive.parv"), &Choice::default())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("no/such/drive.parv: "), "{error}");
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = "a = [".repeat(100_000);
    assert!(syntax::parse("deep", &format!("x y {{ {deep}")).is_err());
    assert!(syntax::parse("deep", &"a b [".repeat(100_000)).is_err());
    let round = import_text("a", "source b", &Choice::default(), |_| {
        Ok("source b".to_string())
    });
    let error = round.unwrap_err().to_string();
    assert_eq!(error, "b:1: files that name files more than 8 deep");
}

/// Files that each name the next one 16 times, which are not deep but millions: reading them once
/// took minutes, and as much memory as there was.
#[test]
fn many_files_are_an_error() {
    let next = |name: &str| name.parse::<u32>().map_or(0, |number| number + 1);
    let at_top = import_text("a", "source 0", &Choice::default(), |name| {
        let named = format!("source {}\n", next(name));
        Ok(if next(name) < 8 {
            named.repeat(16)
        } else {
            String::new()
        })
    });
    let error = at_top.unwrap_err().to_string();
    assert_eq!(error, "6:9: more than 100 files are named in all");
    let as_values = import_text(
        "a",
        "disksim_disk D { Model = source 0 }",
        &Choice::default(),
        |name| {
            let named = format!("k = source {},\n", next(name));
            let last = "k = 1".to_owned();
            let params = if next(name) < 6 {
                named.repeat(16)
            } else {
                last
            };
            Ok(format!("a b {{\n{params}\n}}"))
        },
    );
    let error = as_values.unwrap_err().to_string();
    assert!(
        error.ends_with("more than 100 files are named in all"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = syntax::parse("any", &text);
    }

    #[test]
    fn any_tokens_are_read_or_refused(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", "=", ",", "a", "source", "instantiate", "as", "topology", "\n",
                "#", "\"", "-1", "disksim_disk", "dm_disk",
            ]),
            0..60,
        ),
    ) {
        let text = tokens.join(" ");
        let _ = import_text("any", &text, &Choice::default(), |_| Ok(text.clone()));
    }

    /// With any number in place of any number, and any line left out, importing ends in a profile
    /// or an error.
    #[test]
    fn any_values_are_taken_or_refused(
        which in any::<prop::sample::Index>(),
        value in prop_oneof![
            any::<i64>().prop_map(|value| value.to_string()),
            any::<f64>().prop_map(|value| value.to_string()),
            (-3_i64..2000).prop_map(|value| value.to_string()),
        ],
        left_out in any::<prop::sample::Index>(),
        leave_out in any::<bool>(),
    ) {
        let mut files = Files::new();
        for text in [&mut files.specs, &mut files.model] {
            let starts: Vec<usize> = text
                .char_indices()
                .filter(|&(at, c)| c.is_ascii_digit() && text[..at].ends_with([' ', '-']))
                .map(|(at, _)| at)
                .collect();
            let start = starts[which.index(starts.len())];
            let number = |c: char| c.is_ascii_digit() || c == '.';
            let len = text[start..].find(|c| !number(c)).unwrap();
            text.replace_range(start..start + len, &value);
            if leave_out {
                let lines: Vec<&str> = text.lines().collect();
                let gone = left_out.index(lines.len());
                let kept = lines.iter().enumerate().filter(|&(at, _)| at != gone);
                *text = kept.map(|(_, line)| format!("{line}\n")).collect();
            }
        }
        if let Ok(import) = files.import() {
            let layout = headtime_disk::Layout::new(&import.profile);
            let last = layout.capacity().get() - 1;
            let place = layout.locate(headtime_units::Lba::new(last));
            prop_assert_eq!(
                layout.slot(place.track, place.slot),
                Some(headtime_disk::layout::Slot::Data(headtime_units::Lba::new(last)))
            );
        }
    }
}

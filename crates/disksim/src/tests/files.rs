//! Files that name files, and blocks that are like others.

use super::*;

/// Ranges as in runs of arrays: one block for many instances. The topology names the first instance.
#[test]
fn ranges_of_instances_are_taken_apart() {
    for (range, fits) in [
        ("disk0 .. disk5", true),
        ("disk0..disk5", true),
        ("other, disk0 ..disk0", true),
        ("disk1 .. disk5", false),
    ] {
        let files = Files::new().with("disk0, disk1", range);
        let import = files.import().unwrap_or_else(|e| panic!("{e}"));
        // Without the instance, there is a disk but no way to it.
        assert_eq!(import.notes.is_empty(), fits, "{range}: {:?}", import.notes);
    }
    for (range, error) in [
        (
            "disk5 .. disk0",
            "My drive.parv:14: `disk5 .. disk0` should be two names with ascending numbers, as disk0 .. \
             disk5",
        ),
        (
            "disk0 .. disk99999",
            "My drive.parv:14: ranges of more than 10000 instances in all",
        ),
        (
            "disk0 .. ",
            "My drive.parv:14: found `]`, expected the last name of a range",
        ),
    ] {
        assert_eq!(Files::new().with("disk0, disk1", range).error(), error);
    }
}

/// A block whose kind names an earlier block takes the parameters that it lacks from that block.
#[test]
fn blocks_of_the_kind_of_another_take_its_parameters() {
    let files = Files::new().with(
        "instantiate [ disk0, disk1 ] as DRIVE",
        "DRIVE OTHER { Max queue length = 1 }\ninstantiate [ disk0 ] as OTHER",
    );
    let profile = files.import().unwrap_or_else(|e| panic!("{e}")).profile;
    assert_eq!((profile.model.as_str(), profile.queue.depth), ("OTHER", 1));
    assert_eq!(profile.geometry.capacity.get(), 150);
    let twice = Files::new().with(
        "instantiate [ disk0, disk1 ]",
        "disksim_disk DRIVE { Max queue length = 1 }\ninstantiate [ disk0 ]",
    );
    let import = twice.import().unwrap();
    assert_eq!(
        import.warnings[0],
        "My drive.parv:14: a second disksim_disk of the name DRIVE; the first counts"
    );
    assert_eq!(import.profile.queue.depth, 4);
}

/// Any value may be in a file of its own, and so may items of a list; files are looked for beside the
/// files that name them.
#[test]
fn values_may_be_in_files_of_their_own() {
    let (before, rest) = MODEL.split_once("dm_layout_g1_zone {").unwrap();
    let (zones, after) = rest.split_once("    ]\n  },").unwrap();
    let files = Files::new();
    let beside = |name: &str| match name {
        "drive.diskspecs" => Ok(SPECS.replace("drive.model", "models/m/drive.model")),
        "models/m/drive.model" => Ok(format!("{before} source zones {}", &after_zones(after))),
        "models/m/zones" => Ok(format!("dm_layout_g1_zone {{{zones}")),
        "models/m/drive.seek" => Ok(SEEK.to_string()),
        other => files.beside(&format!("lost {other}")),
    };
    let import = import_text("My drive.parv", RUN, &Choice::default(), beside)
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(import.profile, files.import().unwrap().profile);
    // An error in such a file names the file.
    let wrong = |name: &str| match name {
        "models/m/zones" => {
            Ok(format!("dm_layout_g1_zone {{{zones}, 7").replace("[ 30, 7 ]", "[ x ]"))
        }
        other => beside(other),
    };
    let error = import_text("My drive.parv", RUN, &Choice::default(), wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "zones:5: slips: x is not allowed; allowed are integers from 0 on"
    );
    let two = |name: &str| match name {
        "models/m/drive.model" => Ok("dm_disk A {}, dm_disk B {}".to_string()),
        other => beside(other),
    };
    let error = import_text("My drive.parv", RUN, &Choice::default(), two).unwrap_err();
    assert_eq!(
        error.to_string(),
        "drive.diskspecs:3: Model: models/m/drive.model holds 2 values; one is needed"
    );
}

fn after_zones(after: &str) -> String {
    format!("    ]\n  }},{after}")
}

/// A run with another drive, of one command at a time, beside the first.
fn two_drives() -> Files {
    Files::new()
        .with(
            "instantiate [ disk0, disk1 ] as DRIVE",
            "DRIVE OTHER { Max queue length = 1 }\ninstantiate [ disk0 ] as DRIVE\n\
             instantiate [ disk1 ] as OTHER",
        )
        .with(
            "[ disksim_disk disk0 [] ]",
            "[ disksim_disk disk0 [], disksim_disk disk1 [] ]",
        )
}

fn chosen(files: &Files, drive: &str) -> Result<Import, ImportError> {
    let choice = Choice {
        drive: Some(drive.to_string()),
        ..Choice::default()
    };
    import_text("My drive.parv", &files.run, &choice, |name| {
        files.beside(name)
    })
}

#[test]
fn of_several_drives_that_differ_one_is_chosen_by_name() {
    let files = two_drives();
    assert_eq!(
        files.error(),
        "My drive.parv:14: disksim_disk: several drives that differ; say which with --drive NAME, \
         or as FILE#NAME where a drive is named; there are disk0 (DRIVE), disk1 (OTHER)"
    );
    // By the name of the instance or of the block, with the bus above.
    for (name, depth) in [("disk0", 4), ("DRIVE", 4), ("disk1", 1), ("OTHER", 1)] {
        let profile = chosen(&files, name)
            .unwrap_or_else(|e| panic!("{e}"))
            .profile;
        assert_eq!(profile.queue.depth, depth, "{name}");
        assert_eq!(profile.name, format!("my-drive-{}", name.to_lowercase()));
        assert_eq!(profile.bus.arbitration, Nanos::from_micros(250));
    }
    let error = chosen(&files, "disk2").unwrap_err().to_string();
    assert!(
        error.ends_with("no drive is called disk2; there are disk0 (DRIVE), disk1 (OTHER)"),
        "{error}"
    );
    // Several that are alike are one.
    assert!(Files::new().import().is_ok());
    // Without a topology there is no bus, and drives have the names of their blocks.
    let (blocks, _) = files.run.split_once("topology").unwrap();
    let bare = Files {
        run: blocks.to_string(),
        ..two_drives()
    };
    assert!(
        bare.error().ends_with("there are DRIVE, OTHER"),
        "{}",
        bare.error()
    );
    assert_eq!(chosen(&bare, "OTHER").unwrap().profile.queue.depth, 1);
}

#[test]
fn blocks_of_other_sizes_become_sectors_of_these() {
    let choice = Choice {
        block_bytes: 256,
        ..Choice::default()
    };
    let files = Files::new();
    let beside = |name: &str| files.beside(name);
    let small = import_text("My drive.parv", RUN, &choice, beside)
        .unwrap()
        .profile;
    let usual = files.import().unwrap().profile;
    assert_eq!(small.geometry.sector_bytes, 256);
    assert_eq!(small.geometry.physical_sector_bytes, 256);
    // The number of sectors and their time on the bus stay.
    assert_eq!(small.geometry.capacity, usual.geometry.capacity);
    assert_eq!((&small.layout, &small.bus), (&usual.layout, &usual.bus));
    assert_eq!(Profile::from_toml("a.toml", &small.to_toml()), Ok(small));
}

//! Files that name files, and blocks that are like others.

use super::*;

/// As in runs of arrays: one block for many instances, of which the topology names the first.
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

/// A block of the kind of an earlier one is like that, but for what it gives itself.
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
    let import = import_text("My drive.parv", RUN, beside).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(import.profile, files.import().unwrap().profile);
    // What is wrong in such a file is said of that file.
    let wrong = |name: &str| match name {
        "models/m/zones" => {
            Ok(format!("dm_layout_g1_zone {{{zones}, 7").replace("[ 30, 7 ]", "[ x ]"))
        }
        other => beside(other),
    };
    let error = import_text("My drive.parv", RUN, wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "zones:5: slips: x is not allowed; allowed are integers from 0 on"
    );
    let two = |name: &str| match name {
        "models/m/drive.model" => Ok("dm_disk A {}, dm_disk B {}".to_string()),
        other => beside(other),
    };
    let error = import_text("My drive.parv", RUN, two).unwrap_err();
    assert_eq!(
        error.to_string(),
        "drive.diskspecs:3: Model: models/m/drive.model holds 2 values; one is needed"
    );
}

fn after_zones(after: &str) -> String {
    format!("    ]\n  }},{after}")
}

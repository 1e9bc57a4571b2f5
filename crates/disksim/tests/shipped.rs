//! The profiles that ship for the drives of DiskSim's release.

use headtime_disk::profile::{Trust, by_name};
use headtime_disksim::{Choice, import};
use std::path::Path;

/// Values that the importer cannot know: shipped name, file, model, provenance.
const MEASURED: [(&str, &str, &str, &str); 5] = [
    (
        "atlas10k",
        "atlas10k",
        "Quantum Atlas 10K, 9.2 GB, 10025 rpm",
        "Restated from the validated parameter files \"atlas10k\" of the DiskSim 4.0 release, which \
         were\nextracted from a real unit by issuing SCSI commands to it (Schindler and Ganger, \
         Automated disk\ndrive characterization, CMU-CS-99-176). DiskSim's own response times \
         differ from the measured\nones of the release's trace by 0.268 ms (root mean square of \
         the distance of the distributions).\nThe files say nothing about reordering in the \
         drive, and have no noise.",
    ),
    (
        "cheetah9lp",
        "cheetah9LP",
        "Seagate Cheetah 9LP ST39102LW, 9.1 GB, 10045 rpm",
        "Restated from the validated parameter files \"cheetah9LP\" of the DiskSim 4.0 release, \
         which were\nextracted from a real unit by issuing SCSI commands to it (Schindler and \
         Ganger, Automated disk\ndrive characterization, CMU-CS-99-176). DiskSim's own response \
         times differ from the measured\nones of the release's trace by 0.108 ms (root mean \
         square of the distance of the distributions).\nThe files say nothing about reordering \
         in the drive, and have no noise.",
    ),
    (
        "barracuda-st32171w",
        "barracuda",
        "Seagate Barracuda ST32171W, 2.1 GB, 7200 rpm",
        "Restated from the validated parameter files \"barracuda\" of the DiskSim 4.0 release, \
         which were\nextracted from a real unit by issuing SCSI commands to it (Schindler and \
         Ganger, Automated disk\ndrive characterization, CMU-CS-99-176). DiskSim's own response \
         times differ from the measured\nones of the release's trace by 0.348 ms (root mean \
         square of the distance of the distributions).\nThe files say nothing about reordering \
         in the drive, and have no noise.",
    ),
    (
        "ibm18es",
        "ibm18es",
        "IBM Ultrastar 18ES DNES-309170W, 9.2 GB, 7200 rpm",
        "Restated from the validated parameter files \"ibm18es\" of the DiskSim 4.0 release, which \
         were\nextracted from a real unit by issuing SCSI commands to it (Schindler and Ganger, \
         Automated disk\ndrive characterization, CMU-CS-99-176). DiskSim's own response times \
         differ from the measured\nones of the release's trace by 0.136 ms (root mean square of \
         the distance of the distributions).\nThe files say nothing about reordering in the \
         drive, and have no noise.",
    ),
    (
        "hp-c2247a",
        "hp_c2247a",
        "Hewlett-Packard C2247A, 1.05 GB, 5400 rpm",
        "Restated from the validated parameter files \"hp_c2247a\" of the DiskSim 4.0 release \
         (Worthington,\nGanger, Patt and Wilkes, On-line extraction of SCSI disk drive \
         parameters, SIGMETRICS 1995).\nDiskSim's own response times differ from the measured \
         ones of the release's trace by 0.093 ms\n(root mean square of the distance of the \
         distributions). The bus is that of the measured host.\nThe files say nothing about \
         reordering in the drive, and have no noise.",
    ),
];

/// The shipped profiles of the measured drives equal the imported files, except for names and provenance. With
/// `HEADTIME_BLESS` set, the test writes them anew.
#[test]
fn shipped_profiles_are_the_imported_ones() {
    let Some(files) = headtime_testkit::data("disksim-valid") else {
        return;
    };
    for (name, file, model, text) in MEASURED {
        let import = import(&files.join(format!("{file}.parv")), &Choice::default()).unwrap();
        assert_eq!(import.notes, [""; 0], "{name}");
        let restated = import
            .profile
            .with(|spec| {
                spec.name = name.to_string();
                spec.model = model.to_string();
                spec.provenance = text.to_string();
                spec.trust = [
                    "geometry", "rotation", "layout", "seek", "access", "cache", "overhead", "bus",
                ]
                .iter()
                .map(|key| (key.to_string(), Trust::Measured))
                .chain([("queue".to_string(), Trust::Assumed)])
                .collect();
            })
            .unwrap();
        if std::env::var_os("HEADTIME_BLESS").is_some() {
            let path =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../profiles/{name}.toml"));
            std::fs::write(path, restated.to_toml()).unwrap();
        } else {
            assert_eq!(by_name(name).unwrap(), restated, "{name}");
        }
    }
}

use super::*;
use crate::Modelled;
use headtime_disk::Profile;
use headtime_disk::profile::{CacheSpec, FirmwarePolicy, Spec, by_name};

/// Scores of all jobs, by name.
fn scores(disk: &Profile, model: &Profile, reads: u32) -> Vec<(Job, Score)> {
    let (mut disk, mut model) = (Modelled::new(disk, 1), Modelled::new(model, 2));
    let common = common(&disk, &model).unwrap();
    let jobs = jobs(&common, reads, 1).into_iter();
    jobs.map(|job| {
        let [disk, model]: [&mut dyn Probe; 2] = [&mut disk, &mut model];
        let [disk, model] = [disk, model].map(|side| run(side, &job, &mut || {}).unwrap());
        let score = Score::of(&disk, &model);
        (job, score)
    })
    .collect()
}

fn differing(disk: &Profile, model: &Profile) -> Vec<&'static str> {
    let scores = scores(disk, model, 400);
    let differs = scores
        .iter()
        .filter(|(_, score)| score.agreement() == Agreement::Differs);
    differs.map(|(job, _)| job.name).collect()
}

/// Two units of a drive differ by noise only.
#[test]
fn a_drive_agrees_with_its_own_profile() {
    for name in ["atlas10k", "wd5000aaks", "exos-x18"] {
        let profile = by_name(name).unwrap();
        for (job, score) in scores(&profile, &profile, 400) {
            let found = score.agreement();
            assert!(
                found != Agreement::Differs,
                "{name}, {}: {score:?}",
                job.name
            );
        }
    }
}

#[test]
fn a_wrong_key_shows_in_the_jobs_that_name_it() {
    let disk = by_name("wd5000aaks").unwrap();
    let changed = |change: &dyn Fn(&mut Spec)| {
        let model = disk.with(|spec| change(spec)).unwrap();
        differing(&disk, &model)
    };
    let slow = changed(&|model| model.rotation.rpm = 5400.0);
    assert!(
        slow.contains(&"sequential 128 KiB at the beginning"),
        "{slow:?}"
    );
    let ahead = changed(&|model| model.cache = CacheSpec::default());
    assert!(ahead.contains(&"sequential 4 KiB"), "{ahead:?}");
    assert!(!ahead.contains(&"random 4 KiB"), "{ahead:?}");
    let fifo = changed(&|model| {
        model.queue.policy = FirmwarePolicy::Fifo;
    });
    let deep = [
        "random 4 KiB, 4 in the drive",
        "random 4 KiB, 32 in the drive",
    ];
    assert_eq!(fifo, deep);
}

#[test]
fn jobs_stay_on_the_disk_are_aligned_and_depend_on_the_seed_alone() {
    for capacity in [CAPACITY_MIN.0 / 512, 35_156_656_128] {
        let common = Common {
            capacity: Sectors::new(capacity),
            sector_bytes: 512,
            aligned_bytes: 4096,
            depth: 32,
        };
        let all = jobs(&common, 5000, 7);
        assert_eq!(all.len(), SORTS.len());
        assert_eq!(all, jobs(&common, 5000, 7));
        assert!(all != jobs(&common, 5000, 8));
        for job in &all {
            assert_eq!(job.reads.len(), 5000);
            for read in &job.reads {
                assert!(read.end().get() <= capacity, "{}: {read}", job.name);
                assert!(read.start.get() % 8 == 0 && read.len.get() % 8 == 0);
            }
        }
        let shallow = Common { depth: 1, ..common };
        assert_eq!(jobs(&shallow, 1, 7).len(), SORTS.len() - 2);
    }
}

#[test]
fn a_disk_that_cannot_be_compared_is_an_error() {
    let old = Modelled::new(&by_name("hp-c2247a").unwrap(), 1);
    let new = Modelled::new(&by_name("exos-x18-4kn").unwrap(), 1);
    let error = common(&old, &new).unwrap_err().to_string();
    assert!(error.contains("512") && error.contains("4096"), "{error}");
}

#[test]
fn an_unreadable_sector_ends_a_job_with_its_place() {
    let profile = by_name("atlas10k").unwrap();
    let mut disk = Modelled::new(&profile, 1);
    let common = common(&disk, &Modelled::new(&profile, 1)).unwrap();
    let job = &jobs(&common, 20, 1)[0];
    disk.spoil(job.reads[11], 2);
    let error = run(&mut disk, job, &mut || {}).unwrap_err().to_string();
    assert!(error.contains(&job.reads[11].to_string()), "{error}");
}

/// Means and medians on both sides of each limit. Equal times leave nothing to chance.
#[test]
fn the_verdict_goes_by_means_and_medians_beyond_the_time_of_a_host() {
    let ms = |ms: f64| Nanos::from_millis_f64(ms);
    let verdict = |disk: &[Nanos], model: &[Nanos]| Score::of(disk, model).agreement();
    let flat = |time: f64| vec![ms(time); 100];
    for (model, wanted) in [
        (10.4, Agreement::Agrees),
        (9.6, Agreement::Agrees),
        (10.6, Agreement::Near),
        (11.4, Agreement::Near),
        (11.6, Agreement::Differs),
        (8.4, Agreement::Differs),
    ] {
        assert_eq!(verdict(&flat(10.0), &flat(model)), wanted, "{model}");
    }
    // The means are equal, and the medians are not: 60 of 100 reads are faster.
    let parted = |fast: f64| {
        let slow = (10.0 * 100.0 - 60.0 * fast) / 40.0;
        let read = |number: usize| ms(if number % 5 < 3 { fast } else { slow });
        (0..100).map(read).collect::<Vec<_>>()
    };
    for (fast, wanted) in [
        (9.1, Agreement::Agrees),
        (8.9, Agreement::Near),
        (7.1, Agreement::Near),
        (6.9, Agreement::Differs),
    ] {
        assert_eq!(verdict(&flat(10.0), &parted(fast)), wanted, "{fast}");
    }
    // A host's time is no difference.
    assert_eq!(verdict(&flat(0.10), &flat(0.05)), Agreement::Agrees);
    assert_eq!(verdict(&flat(0.12), &flat(0.05)), Agreement::Differs);
    // Rare long waits do not excuse a large difference.
    let mut stalls = flat(0.05);
    stalls
        .iter_mut()
        .step_by(50)
        .for_each(|time| *time = ms(8.0));
    assert_eq!(verdict(&flat(0.05), &stalls), Agreement::Differs);
}

#[test]
fn times_of_a_job() {
    let times: Vec<Nanos> = (1..=100).map(Nanos::from_millis).collect();
    let of = Times::of(&times);
    assert!((of.mean - 50.5).abs() < 1e-9);
    assert!((of.p50 - 51.0).abs() < 1e-9 && (of.p99 - 100.0).abs() < 1e-9);
    // Ten means of batches, 5.5 to 95.5: standard deviation of a sample.
    assert!(
        (of.error - 30.276_504 / 10_f64.sqrt()).abs() < 1e-3,
        "{}",
        of.error
    );
}

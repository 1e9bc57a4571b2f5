//! Settings of ZFS, md and Ceph that hold background work back.

use headtime_lab::advice::{Role, RoleRun};

/// Beginnings of the names of ZFS's processes that read for a scrub or a resilver (module/zfs/spa.c of OpenZFS 2.2).
const ZFS_SCRUB: [&str; 2] = ["z_rd_int", "z_rd_iss"];
/// Beginnings of the names of ZFS's processes that serve clients.
const ZFS_CLIENTS: [&str; 2] = ["z_wr_", "zvol"];
/// Beginnings of the names of Ceph's threads on a disk (BlueStore and OSD of Ceph 18).
const CEPH: [&str; 4] = ["bstore_", "tp_osd_tp", "ceph-osd", "rocksdb:"];
/// Part of a role's rate today below which a background role is limited by the advice.
const LIMITED_RATE_SHARE: f64 = 0.9;

/// Commands that hold background work back at its program, in place of the drive's queue. The commands are not simulated.
/// `runs` are the results of each role today, and with the recommended setting.
///
/// For ZFS the sum over its queues of the least commands must not exceed `zfs_vdev_max_active` (vdev_queue.c), so no depth
/// can be set there.
pub fn knobs(roles: &[Role], runs: [&[RoleRun]; 2]) -> Vec<String> {
    let mut knobs: Vec<String> = Vec::new();
    for (at, role) in roles.iter().enumerate() {
        let has = |beginnings: &[&str]| {
            let mut names = role.processes.iter();
            names.any(|name| beginnings.iter().any(|start| begins(name, start)))
        };
        let (today, then) = (runs[0][at].mb_s, runs[1][at].mb_s);
        let is_limited = then < LIMITED_RATE_SHARE * today;
        let mut add = |knob: String| {
            if !knobs.contains(&knob) {
                knobs.push(knob);
            }
        };
        if is_limited && has(&ZFS_SCRUB) && !has(&ZFS_CLIENTS) {
            add("echo 1 > /sys/module/zfs/parameters/zfs_vdev_scrub_max_active  # scrubs and resilvers of all pools".to_owned());
        }
        // The rate is the role's. With other processes the resync's share is not known.
        let array = match &role.processes[..] {
            [one] => array(one),
            _ => None,
        };
        if let Some(array) = array.filter(|_| is_limited) {
            let rate = (then * 1e6 / 1024.0).max(1.0);
            add(format!(
                "echo {rate:.0} > /sys/block/{array}/md/sync_speed_max  # this resync alone"
            ));
        }
        if has(&CEPH) {
            add("ceph config set osd osd_mclock_profile high_client_ops  # clients before recovery and scrubs".to_owned());
        }
    }
    knobs
}

/// True if a name begins so. A name that ends in `*` stands for all names that begin so.
fn begins(name: &str, start: &str) -> bool {
    let open = name.strip_suffix('*').filter(|open| !open.is_empty());
    name.starts_with(start) || open.is_some_and(|open| start.starts_with(open))
}

/// The array of an md process that resyncs, such as `md0_resync`.
fn array(process: &str) -> Option<&str> {
    let array = process.strip_suffix("_resync");
    let array = array.or_else(|| process.strip_suffix("_*"))?;
    let number = array.strip_prefix("md")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    (!number.is_empty() && number.chars().all(is_name)).then_some(array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_lab::advice::SpeedMeasure;

    fn role(processes: &[&str]) -> Role {
        Role {
            name: "role".to_owned(),
            class: headtime_sched::Class::default(),
            measure: SpeedMeasure::Requests,
            processes: processes.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn run(mb_s: f64) -> RoleRun {
        RoleRun {
            mb_s,
            ..RoleRun::default()
        }
    }

    /// Knobs of a role that has 100 MB/s today and `then` MB/s with the advice.
    fn of(processes: &[&str], then: f64) -> Vec<String> {
        knobs(&[role(processes)], [&[run(100.0)], &[run(then)]])
    }

    #[test]
    fn what_the_advice_slows_down_can_be_limited_by_zfs_and_md() {
        let zfs = of(&["z_rd_int*", "txg_sync"], 30.0);
        assert_eq!(zfs.len(), 1);
        assert!(
            zfs[0].starts_with("echo 1 > /sys/module/zfs/parameters/zfs_vdev_scrub_max_active")
        );
        assert_eq!(of(&["z_rd_*"], 30.0), zfs, "a pattern");
        assert!(
            of(&["z_rd_int_3", "zvol_tq-0"], 30.0).is_empty(),
            "clients, too"
        );
        let md = of(&["md127_resync"], 51.2);
        assert_eq!(md.len(), 1);
        assert!(md[0].starts_with("echo 50000 > /sys/block/md127/md/sync_speed_max"));
        assert!(of(&["md127_resync", "postgres"], 51.2).is_empty());
        let starved = of(&["md127_*"], 0.0);
        assert!(starved[0].starts_with("echo 1 > /sys/block/md127/md/sync_speed_max"));
        for faster in ["z_rd_int", "md127_resync"] {
            assert!(of(&[faster], 95.0).is_empty());
        }
        assert!(of(&["md_resync", "md1;reboot_resync"], 1.0).is_empty());
    }

    #[test]
    fn other_processes_have_no_knobs() {
        assert!(of(&["postgres", "kworker/u8:1", "zfsish"], 10.0).is_empty());
        assert_eq!(of(&["tp_osd_tp", "bstore_aio"], 100.0).len(), 1);
    }
}

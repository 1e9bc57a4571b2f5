//! Keys of fio: keys with a meaning here, idle keys, refused keys.

use headtime_units::nearest;

/// Keys with a meaning here.
pub(super) const MEANT: &str = "\
    rw bs bssplit rwmixread rwmixwrite random_distribution ioengine iodepth numjobs direct buffered filename directory \
    size io_size offset number_ios runtime time_based startdelay thinktime rate rate_iops fsync fdatasync";

/// Other names of keys, and keys that set the same thing in another way.
const ALIASES: &str = "readwrite=rw blocksize=bs bssplit=bs rwmixwrite=rwmixread buffered=direct \
    io_limit=io_size rate_iops=rate fdatasync=fsync";

/// Keys that change neither the requests nor their times. A word that ends in `_` stands for all keys that begin with it.
const IDLE: &str = "\
    name description thread group_reporting new_group randrepeat allrandrepeat randseed norandommap softrandommap \
    random_generator invalidate fallocate fadvise_hint overwrite unlink unlink_each_loop unique_filename \
    filename_format create_ allow_ openfiles lockfile mem iomem mem_align iomem_align hugepage-size lockmem \
    zero_buffers refill_buffers scramble_buffers buffer_ dedupe_ gtod_ clocksource nice prio cpus_ cpumask numa_ \
    uid gid exec_ write_ per_job_logs log_ bwavgtime iopsavgtime disk_util disable_ lat_percentiles \
    clat_percentiles slat_percentiles percentile_list significant_figures stats unified_rw_reporting \
    continue_on_error ignore_error error_dump exitall_on_error ioscheduler unit_base thinktime_spin end_fsync \
    fsync_on_close iodepth_batch iodepth_batch_submit iodepth_batch_complete_max fixedbufs registerfiles \
    nonvectored force_async sqthread_poll sqthread_poll_cpu hipri userspace_reap";

/// Keys that change the requests or their times, and are not simulated, with advice. `=` stands before a value that switches
/// a key off.
pub(super) const REFUSED: &str = "\
bsrange blocksize_range bs_unaligned=0 blocksize_unaligned=0 bs_is_seq_rand=0|give sizes with bs or bssplit
ba blockalign offset_align=0|remove the key: random addresses are multiples of the least size
percentage_random=100|make a random and a sequential job
kb_base=1024|write sizes for kb_base=1024
nrfiles=1 opendir file_service_type=roundrobin offset_increment=0|give each file a job
filesize=0 create_only=0 fill_device=0 fill_fs=0 file_append=0|say with size and offset what is used
loops=1|say with io_size how much is asked for
ramp_time=0|remove the key, and give the command --set run.warm_up=TIME
stonewall wait_for_previous wait_for|give each job a job file of its own, or a startdelay
exitall=0 exit_what steadystate|say with runtime when a job ends
prioclass=0 prioclass=2 cmdprio_percentage=0 cmdprio_bssplit|remove the key, and set class in the printed scenario
sync=0 sync=none write_barrier=0 sync_file_range|have the cache flushed with fsync=N
rate_process=linear rate_min=0 rate_iops_min=0 rate_ignore_thinktime=0 io_submit_mode=inline|remove the key
thinktime_blocks=1 thinktime_blocks_type=complete thinktime_iotime=0 latency_target=0 flow=0|remove the key
iodepth_batch_complete=1 iodepth_batch_complete_min=0 iodepth_batch_complete_min=1 iodepth_low=0|remove the key
serialize_overlap=0 rw_sequencer=sequential cgroup profile trim_percentage=0|remove the key
zonemode=none zonesize=0 zonerange=0 zoneskip=0|remove the key
verify=0 verify=null|remove the key: simulated data have no contents
read_iolog|replay the log with `headtime trace replay`";

/// The name under which the value of a key is stored.
pub(super) fn canonical(key: &str) -> &str {
    let mut aliases = ALIASES.split_whitespace();
    let name = aliases.find_map(|alias| alias.strip_prefix(key)?.strip_prefix('='));
    name.unwrap_or(key)
}

/// Returns true if a key has a meaning here, false if it is idle.
///
/// # Errors
///
/// If the key or its value is not simulated.
pub(super) fn meaning(key: &str, value: &str) -> Result<bool, String> {
    if let Some(file) = key.strip_prefix("include ") {
        let file = file.trim();
        return Err(format!(
            "other files are not included; copy the lines of {file} here"
        ));
    }
    if value.contains('$') {
        return Err(format!(
            "`{value}`: variables are not replaced; write the value"
        ));
    }
    if MEANT
        .split_whitespace()
        .any(|meant| meant == canonical(key))
    {
        return Ok(true);
    }
    for (refused, advice) in REFUSED.lines().filter_map(|line| line.split_once('|')) {
        let mut values = refused.split(' ').filter_map(|refused| {
            let (name, off) = refused.split_once('=').unwrap_or((refused, ""));
            (name == key).then_some(off)
        });
        if let Some(off) = values.next() {
            let is_off = !value.is_empty() && (off == value || values.any(|off| off == value));
            let problem = "changes the load and is not simulated";
            return match is_off {
                true => Ok(false),
                false => Err(format!("`{value}` {problem}; {advice}")),
            };
        }
    }
    let begins = |idle: &str| idle.ends_with('_') && key.starts_with(idle);
    if IDLE
        .split_whitespace()
        .any(|idle| idle == key || begins(idle))
    {
        return Ok(false);
    }
    let guess = nearest(key, MEANT.split_whitespace().chain(IDLE.split_whitespace()));
    let guess = guess.map_or_else(String::new, |name| {
        format!("did you mean `{name}`? If not, ")
    });
    Err(format!(
        "is no key that is known here; {guess}remove the key if it does not change what is read and written"
    ))
}

//! Keys of fio: keys with a meaning here, idle keys, refused keys.

/// Keys with a meaning here.
pub(super) const MEANT: &str = "\
    name rw bs bsrange bssplit ba rwmixread rwmixwrite percentage_random random_distribution ioengine iodepth \
    numjobs direct buffered filename directory size filesize io_size offset offset_increment number_ios loops \
    runtime time_based ramp_time startdelay stonewall thinktime rate rate_iops rate_process fsync fdatasync sync \
    prioclass randseed kb_base";

/// Other names of keys.
const ALIASES: &str = "readwrite=rw blocksize=bs blocksize_range=bsrange blockalign=ba io_limit=io_size \
    wait_for_previous=stonewall iodepth_batch=iodepth_batch_submit \
    iodepth_batch_complete=iodepth_batch_complete_min fill_fs=fill_device blocksize_unaligned=bs_unaligned";

/// Keys that change neither the requests nor their times.
pub(super) const IDLE: &str = "\
    description thread group_reporting new_group randrepeat allrandrepeat norandommap softrandommap \
    random_generator invalidate fallocate fadvise_hint write_hint overwrite unlink unlink_each_loop \
    unique_filename filename_format create_serialize create_fsync create_on_open allow_file_create \
    allow_mounted_write openfiles lockfile mem iomem mem_align iomem_align hugepage-size lockmem zero_buffers \
    refill_buffers scramble_buffers buffer_compress_percentage buffer_compress_chunk buffer_pattern \
    dedupe_percentage dedupe_mode gtod_reduce gtod_cpu clocksource nice prio cpus_allowed cpus_allowed_policy \
    cpumask numa_cpu_nodes numa_mem_policy uid gid exec_prerun exec_postrun write_bw_log write_lat_log \
    write_hist_log write_iops_log write_iolog per_job_logs log_entries log_avg_msec log_hist_msec \
    log_hist_coarseness log_max_value log_offset log_compression log_compression_cpus log_store_compressed \
    log_unix_epoch bwavgtime iopsavgtime disk_util disable_lat disable_clat disable_slat disable_bw \
    disable_bw_measurement lat_percentiles clat_percentiles slat_percentiles percentile_list significant_figures \
    stats unified_rw_reporting continue_on_error ignore_error error_dump exitall_on_error ioscheduler unit_base \
    thinktime_spin end_fsync fsync_on_close iodepth_batch_submit iodepth_batch_complete_max fixedbufs \
    registerfiles nonvectored force_async sqthread_poll sqthread_poll_cpu hipri userspace_reap";

/// Keys that change the requests or their times, and are not simulated. Each line has the values that switch the key off,
/// and what to do instead.
pub(super) const REFUSED: &str = "\
nrfiles|1|a job has one file; give each file a job of its own
opendir||a job has one file; give each file a job of its own
file_service_type|roundrobin|a job has one file; give each file a job of its own
verify|0 null|simulated data have no contents
read_iolog||`headtime trace replay` replays a log
thinktime_blocks|1|allowed is 1
thinktime_blocks_type|complete|allowed is complete
thinktime_iotime|0|
iodepth_batch_complete_min|0 1|allowed is 1
iodepth_low|0|
io_submit_mode|inline|rate gives requests their times
serialize_overlap|0|the engine does so anyway
rw_sequencer|sequential|allowed is sequential
bs_unaligned|0|bsrange has multiples of its lower end
bs_is_seq_rand|0|bs=READ,WRITE gives two sizes
offset_align|0|offset is taken in bytes
zonemode|none|
zonesize|0|
zonerange|0|
zoneskip|0|
write_barrier|0|fsync=N has the cache flushed
sync_file_range||fsync=N has the cache flushed
file_append|0|offset says where to begin
fill_device|0|size says how much
rate_min|0|
rate_iops_min|0|
rate_ignore_thinktime|0|
latency_target|0|
steadystate||runtime says when to stop
flow|0|
exitall|0|runtime says when to stop
exit_what||runtime says when to stop
wait_for||startdelay says when to begin
cmdprio_percentage|0|prioclass gives a job its class
cmdprio_bssplit||prioclass gives a job its class
trim_percentage|0|nothing is trimmed
cgroup||
profile||";

/// The main name of a key.
pub(super) fn canonical(key: &str) -> &str {
    let mut aliases = ALIASES
        .split_whitespace()
        .filter_map(|alias| alias.split_once('='));
    aliases
        .find(|(alias, _)| *alias == key)
        .map_or(key, |(_, name)| name)
}

/// The refused keys: name, values that switch the key off, advice.
pub(super) fn refused() -> impl Iterator<Item = [&'static str; 3]> {
    REFUSED.lines().filter_map(|line| {
        let mut parts = line.split('|');
        Some([parts.next()?, parts.next()?, parts.next()?])
    })
}

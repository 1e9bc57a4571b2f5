//! The keys of DiskSim's disk module: each set to something else, on five measured drives.
//!
//! `cargo test -p headtime-disksim --test keys -- --nocapture` prints the table of
//! `docs/design/2026-11-27-disksim-keys.md`.

use headtime_disk::validate::{self, Measured};
use headtime_units::Nanos;
use std::fs::read_to_string;

const DRIVES: [&str; 5] = [
    "ibm18es",
    "cheetah9LP",
    "atlas10k",
    "barracuda",
    "hp_c2247a",
];

/// Key of DiskSim, key of a profile, meaning, value (`!` is the opposite of a flag), and `acts` if the value changes a response
/// time of a drive.
const KEYS: &str = "\
Per-request overhead time | overhead.per_command | for each command, in front of all else | 0.1 | acts
Time scale for overheads | overhead | factor of all other overheads | 2 | acts
Bulk sector transfer time | bus.interface_sector | least time of a sector over the bus | 0 | acts
Hold bus entire read xfer | bus.hold_for_read | a read keeps the bus while it waits for sectors | ! | acts
Hold bus entire write xfer | bus.hold_for_write | a write keeps the bus while it waits for room | ! | -
Allow almost read hits | cache.almost_read_hits | the first sector is just being read ahead: a partial hit | ! | -
Allow sneaky full read hits | cache.sneaky_full_read_hits | full hits while the arm serves others | ! | acts
Allow sneaky partial read hits | cache.sneaky_partial_read_hits | partial hits while the arm serves others | ! | -
Allow sneaky intermediate read hits | cache.sneaky_intermediate_read_hits | queued reads are searched for hits | ! | acts
Allow read hits on write data | cache.read_hits_on_write_data | written data serve reads | ! | acts
Allow write prebuffering | cache.write_prebuffering | data of queued writes are fetched | ! | acts
Preseeking level | queue.preseek | the arm leaves before the last command completes | 2 | -
Never disconnect | bus.never_disconnect | a command keeps the bus to its end | ! | acts
Number of buffer segments | cache.segments | segments | 1 | acts
Maximum number of write segments | cache.write_segments | segments with written data | 2 | -
Segment size (in blks) | cache.segment_sectors | sectors in a segment | 128 | acts
Use separate write segment | cache.dedicated_write_segment | one segment is for writes alone | ! | acts
Low (write) water mark | cache.write_low_water | share from which a write asks for the bus | 0 | -
High (read) water mark | cache.read_high_water | share from which a read asks for the bus | 0 | acts
High (read) water mark | cache.read_high_water | share from which a read asks for the bus | 1 | acts
Set watermark by reqsize | cache.water_by_request | share of the request, else of the segment | ! | acts
Enable caching in buffer | cache.enabled | data stay for later commands | ! | acts
Buffer continuous read | cache.read_ahead | end of reading ahead: 0 none, 1 track, 3 segment, 4 next track | 0 | acts
Buffer continuous read | cache.read_ahead | end of reading ahead: 0 none, 1 track, 3 segment, 4 next track | 1 | acts
Buffer continuous read | cache.read_ahead | end of reading ahead: 0 none, 1 track, 3 segment, 4 next track | 3 | acts
Buffer continuous read | cache.read_ahead | end of reading ahead: 0 none, 1 track, 3 segment, 4 next track | 4 | acts
Minimum read-ahead (blks) | cache.read_ahead_min | read ahead before others interrupt | 32 | acts
Maximum read-ahead (blks) | cache.read_ahead_max | most read ahead | 32 | acts
Read-ahead over requested | cache.requested_data | requested data: -1 dropped, 0 kept, 1 replaceable | -1 | acts
Read-ahead over requested | cache.requested_data | requested data: -1 dropped, 0 kept, 1 replaceable | 0 | acts
Read-ahead over requested | cache.requested_data | requested data: -1 dropped, 0 kept, 1 replaceable | 1 | acts
Read-ahead on idle hit | cache.read_ahead_on_idle_hit | a full hit starts reading ahead | ! | acts
Read any free blocks | cache.read_free_sectors | sectors in front of a read are kept | ! | acts
Fast write level | cache.write_back | writes complete in the buffer: 0 never, 1 and 2 in sequence | 0 | acts
Immediate buffer read | access.zero_latency_read | sectors are read as they pass | ! | acts
Immediate buffer write | access.zero_latency_write | sectors are written as they pass | ! | acts
Combine seq writes | cache.combine_sequential_writes | sequential writes share a segment | ! | acts
Stop prefetch in sector | cache.stop_read_ahead_in_sector | reading ahead stops within a sector | ! | -
Disconnect write if seek | cache.disconnect_write_in_seek | a write leaves the bus while the arm moves | ! | acts
Write hit stop prefetch | cache.write_hit_stops_read_ahead | a write to what is read ahead ends that | ! | -
Read directly to buffer | cache.read_direct_to_buffer | a sector needs its place before it is read, else after | ! | -
Immed transfer partial hit | cache.send_partial_hit_at_once | the cached part is sent at once | ! | -
Read hit over. after read | overhead.read_hit_after_read | processing | 0 | acts
Read hit over. after write | overhead.read_hit_after_write | processing | 0 | acts
Read miss over. after read | overhead.read_miss_after_read | processing | 0 | acts
Read miss over. after write | overhead.read_miss_after_write | processing | 0 | acts
Write hit over. after read | overhead.write_hit_after_read | processing where writes complete in the buffer | 0 | acts
Write hit over. after write | overhead.write_hit_after_write | processing where writes complete in the buffer | 0 | acts
Write miss over. after read | overhead.write_miss_after_read | processing of other writes | 0 | acts
Write miss over. after write | overhead.write_miss_after_write | processing of other writes | 0 | acts
Read completion overhead | overhead.read_completion | message of completion | 0 | acts
Write completion overhead | overhead.write_completion | message of completion | 0 | acts
Data preparation overhead | overhead.data_preparation | before each transfer | 0 | acts
First reselect overhead | overhead.first_reselect | first time on the bus again | 0 | acts
Other reselect overhead | overhead.other_reselect | further times | 0 | acts
Read disconnect afterread | overhead.read_disconnect_after_read | leaving the bus | 0 | -
Read disconnect afterwrite | overhead.read_disconnect_after_write | leaving the bus | 0 | -
Write disconnect overhead | overhead.write_disconnect | leaving the bus | 0 | -
Extra write disconnect | overhead.early_write_disconnect | a write behind a write leaves the bus early | ! | acts
Minimum seek delay | overhead.minimum_seek_delay | least movement for a write | 0 | acts
";

/// The text of a parameter file with one value in place of another; `None` if that is the value already.
fn changed(text: &str, key: &str, value: &str) -> Option<String> {
    let (before, rest) = text.split_once(&format!("{key} =")).expect(key);
    let end = rest.find([',', '\n']).unwrap();
    let (old, behind) = rest.split_at(end);
    let old: f64 = old.trim().parse().unwrap();
    let value = match value {
        "!" => 1.0 - old,
        value => value.parse().unwrap(),
    };
    (value != old).then(|| format!("{before}{key} = {value}{behind}"))
}

/// The response times that a drive of these parameters has.
fn times(name: &str, specs: &str, trace: &[Measured]) -> Vec<Nanos> {
    let valid = headtime_testkit::data("disksim-valid").unwrap();
    let parv = read_to_string(valid.join(format!("{name}.parv"))).unwrap();
    let beside = |file: &str| match file.ends_with(".diskspecs") {
        true => Ok(specs.to_owned()),
        false => read_to_string(valid.join(file)),
    };
    let import = headtime_disksim::import_text(name, &parv, &Default::default(), beside).unwrap();
    validate::validate(&import.profile, name, trace)
        .unwrap()
        .modelled
}

/// Demerits of the reads and of the writes, us.
fn demerits(trace: &[Measured], times: &[Nanos]) -> [f64; 2] {
    [true, false].map(|reads| {
        let pairs = trace.iter().zip(times);
        let (measured, modelled): (Vec<_>, Vec<_>) = pairs
            .filter(|(request, _)| request.op.is_read() == reads)
            .map(|(request, time)| (request.response, *time))
            .unzip();
        1_000.0 * validate::demerit_ms(&measured, &modelled)
    })
}

#[test]
fn keys_change_what_is_stated_and_nothing_else() {
    let Some(valid) = headtime_testkit::data("disksim-valid") else {
        return;
    };
    let drives = DRIVES.map(|name| {
        let trace = read_to_string(valid.join(format!("{name}.trace"))).unwrap();
        let trace = validate::parse(name, &trace).unwrap();
        let specs = read_to_string(valid.join(format!("{name}.diskspecs"))).unwrap();
        let times = times(name, &specs, &trace);
        (name, trace, specs, times)
    });
    println!(
        "| DiskSim | profile | meaning | set to | {} |",
        DRIVES.join(" | ")
    );
    println!("{}", "|---".repeat(9) + "|");
    let as_it_is = drives.each_ref().map(|(_, trace, _, times)| {
        let [reads, writes] = demerits(trace, times);
        format!("{reads:.0}, {writes:.0}")
    });
    println!("| as it is, us | | | | {} |", as_it_is.join(" | "));
    for line in KEYS.lines() {
        let fields: Vec<&str> = line.split(" | ").collect();
        let [key, ours, meaning, value, stated] = fields[..] else {
            panic!("{line}")
        };
        let mut acts = false;
        let cells = drives.each_ref().map(|(name, trace, specs, before)| {
            let Some(specs) = changed(specs, key, value) else {
                return String::new();
            };
            let after = times(name, &specs, trace);
            acts |= after != *before;
            let (old, new) = (demerits(trace, before), demerits(trace, &after));
            let [reads, writes] = [0, 1].map(|part| (new[part] - old[part]).round() + 0.0);
            match after == *before {
                true => "=".to_owned(),
                false => format!("{reads:+}, {writes:+}"),
            }
        });
        let set = if value == "!" { "opposite" } else { value };
        println!(
            "| `{key}` | `{ours}` | {meaning} | {set} | {} |",
            cells.join(" | ")
        );
        assert_eq!(acts, stated == "acts", "{line}");
    }
}

//! Describes the inside of a drive in words: its buffer, its queue, and its treatment of writes.

use headtime_disk::Profile;
use headtime_disk::profile::{Destage, FirmwarePolicy, ReadAhead, WriteBack};

/// Returns the lines of a page for the known facts. `order` tells the order of the drive's commands. `knows` is true for learned keys.
pub(super) fn lines(
    profile: &Profile,
    order: Option<String>,
    knows: impl Fn(&str) -> bool,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let all = [
        ("buffer", buffer(profile, &knows)),
        ("queue", queue(profile, &knows)),
        ("order", order.into_iter().collect()),
        ("writes", writes(profile, &knows)),
    ];
    for (name, parts) in all {
        if !parts.is_empty() {
            lines.push((name, parts.join(", ")));
        }
    }
    lines
}

fn buffer(profile: &Profile, knows: impl Fn(&str) -> bool) -> Vec<String> {
    let cache = &profile.cache;
    let mut parts = Vec::new();
    if knows("cache.segments") {
        let room = match cache.room_sectors {
            room if room > 0 && knows("cache.room_sectors") => format!(", {room} in all"),
            _ => String::new(),
        };
        let places = cache.segments;
        let each = match knows("cache.segment_sectors") {
            true => format!(" of up to {} sectors{room}", cache.segment_sectors),
            false => String::new(),
        };
        let noun = if places == 1 { "place" } else { "places" };
        parts.push(format!("{places} {noun}{each}"));
    }
    if knows("cache.read_ahead") {
        let most = cache.read_ahead_max;
        let most = match knows("cache.read_ahead_max") && most > 0 {
            true => format!(", {most} sectors at most"),
            false => String::new(),
        };
        parts.push(match cache.read_ahead {
            ReadAhead::Off => "reads nothing ahead".to_owned(),
            ReadAhead::TrackEnd => format!("reads ahead to the end of the track{most}"),
            ReadAhead::CylinderEnd => format!("reads ahead to the end of the cylinder{most}"),
            ReadAhead::SegmentFull => format!("reads ahead until the place is full{most}"),
            ReadAhead::NextTrack => format!("reads ahead to the end of the next track{most}"),
        });
    }
    if knows("cache.read_free_sectors") && cache.read_free_sectors {
        parts.push("keeps what passes in front of a read".to_owned());
    }
    parts
}

fn queue(profile: &Profile, knows: impl Fn(&str) -> bool) -> Vec<String> {
    let queue = &profile.queue;
    let mut parts = Vec::new();
    if knows("queue.depth") {
        parts.push(match queue.depth {
            1 => "one command at a time".to_owned(),
            depth => format!("{depth} commands at a time"),
        });
    }
    if !knows("queue.policy") || queue.depth == 1 {
        return parts;
    }
    match queue.policy {
        FirmwarePolicy::Fifo => parts.push("first come, first served".to_owned()),
        FirmwarePolicy::Sptf { margin, age_cap } => {
            let margin = match knows("queue.margin") {
                true => format!(" with a margin of {:.3} ms", margin.as_millis_f64()),
                false => String::new(),
            };
            parts.push(format!("the soonest done first (sptf){margin}"));
            if knows("queue.age_cap") {
                parts.push(match age_cap {
                    Some(age) => format!("none is passed over after {:.2} s", age.as_secs_f64()),
                    None => "however long the others wait".to_owned(),
                });
            }
            if knows("queue.stream_cap") && !queue.stream_cap.is_zero() {
                let stays = queue.stream_cap.as_millis_f64();
                parts.push(format!("stays with reads in order for {stays:.0} ms"));
            }
        }
    }
    parts
}

fn writes(profile: &Profile, knows: impl Fn(&str) -> bool) -> Vec<String> {
    let cache = &profile.cache;
    if !knows("cache.write_back") {
        return Vec::new();
    }
    let mut parts = vec![match cache.write_back {
        WriteBack::Off => return vec!["done when they are on the medium".to_owned()],
        WriteBack::Appending => "done in the buffer while each goes on from the last".to_owned(),
        WriteBack::Flushed => {
            "done in the buffer, which is emptied before anything else".to_owned()
        }
        WriteBack::Full => "done in the buffer".to_owned(),
    }];
    if knows("cache.write_segments") && cache.write_back == WriteBack::Full {
        parts.push(format!("in {} places at most", cache.write_segments));
    }
    if knows("cache.destage") && cache.write_back == WriteBack::Full {
        parts.push(match cache.destage {
            Destage::Segment => "written back place by place".to_owned(),
            Destage::Sweep => "written back in sweeps".to_owned(),
        });
        if knows("cache.destage_delay") {
            let idle = cache.destage_delay.as_millis_f64();
            parts.push(format!("when the drive is idle for {idle:.0} ms"));
        }
        if cache.destage == Destage::Sweep && knows("cache.destage_age") {
            let age = cache.destage_age.as_secs_f64();
            parts.push(format!("what is older than {age:.1} s first"));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::by_name;

    fn text(name: &str, knows: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
        lines(&by_name(name).expect("shipped"), None, knows)
    }

    #[test]
    fn what_is_known_of_the_inside_stands_in_a_line_each() {
        let all = text("wd5000aaks", |_| true);
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["buffer", "queue", "writes"]);
        assert!(all[0].1.contains("places of up to"), "{all:?}");
        assert!(
            all[1]
                .1
                .contains("32 commands at a time, the soonest done first"),
            "{all:?}"
        );
        assert!(all[2].1.starts_with("done in the buffer"), "{all:?}");
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(text("wd5000aaks", |_| false), []);
        let some = text("wd5000aaks", |key| key == "queue.depth");
        assert_eq!(some, [("queue", "32 commands at a time".to_owned())]);
        let one = text("atlas10k", |key| key.starts_with("queue"));
        assert_eq!(one, [("queue", "one command at a time".to_owned())]);
    }
}

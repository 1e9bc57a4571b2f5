//! The first figure of the Stream Scheduling paper (FAST 2011, section 2.1) as a timeline: how a
//! stream forms, and how it is used.
//!
//! Two readers share a disk. The upper reader's next request (`a`, `b`, ..) comes too late and too far away to be a
//! child, so no stream forms. The lower reader's next request (1, 2, ..) comes soon and nearby. Until the lower
//! stream is established the head leaves after each request. From the fourth request on the disk waits, and 5 and 6
//! are served without leaving.
//!
//! With `HEADTIME_BLESS=1` in the environment the timeline and its plot are written anew instead of
//! compared.

mod common;

use common::curve;
use headtime_sched::{Dispatch, Noop, Op, Open, Request, Scheduler, Stream, StreamConfig, Tag};
use headtime_units::{Extent, Lba, Nanos, Time};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// A process that reads at these addresses in order. Each read begins this time after the last one is done.
struct Reader {
    names: &'static [&'static str],
    lbas: &'static [u64],
    think: Nanos,
    next: usize,
}

const LOWER: Reader = Reader {
    names: &["1", "2", "3", "4", "5", "6"],
    lbas: &[100_000, 100_400, 101_000, 101_200, 101_900, 102_200],
    think: Nanos::from_millis(1),
    next: 0,
};

const UPPER: Reader = Reader {
    names: &["a", "b", "c", "d"],
    lbas: &[800_000, 1_300_000, 750_000, 1_350_000],
    think: Nanos::from_millis(8),
    next: 0,
};

/// Something that happens to a request, for the plot.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Arrives,
    /// Service up to this time.
    Served(Time),
    /// Longest cost of a child.
    Open(Nanos),
}

struct Timeline {
    text: String,
    marks: Vec<(Time, &'static str, Lba, What)>,
    /// Place of the head at some times.
    head: Vec<(Time, Lba)>,
    waits: Vec<(Time, Time, Lba)>,
}

fn timeline() -> Timeline {
    let curve = curve();
    let mut sched = Stream::new(Noop::new(), StreamConfig::DEFAULT, Arc::clone(&curve));
    let mut readers = [LOWER, UPPER];
    // When each asks next.
    let mut asks = [Some(Time::ZERO), Some(Time::ZERO + Nanos::from_millis(2))];
    let mut names: [&str; 2] = ["", ""];
    let (mut now, mut head) = (Time::ZERO, Lba::new(700_000));
    let mut drive: Option<(Time, Request)> = None;
    // The turn of the request handed out last: a tag is given again, a turn is not.
    let mut turn = 0;
    let mut wait: Option<(Time, Time)> = None;
    let mut line = Timeline {
        text: String::from("   ms  what happens\n"),
        marks: Vec::new(),
        head: vec![(now, head)],
        waits: Vec::new(),
    };
    let open_of = |sched: &Stream<Noop>, turn| sched.open().find(|open| open.turn == turn);
    loop {
        let done = drive.map(|(done, _)| done);
        let woken = wait.map(|(_, until)| until);
        let next = [done, asks[0], asks[1], woken].into_iter().flatten().min();
        let Some(next) = next else { break };
        now = next;
        let ms = (now - Time::ZERO).as_millis_f64();
        let text = &mut line.text;
        let mut say = |what: String| writeln!(text, "{ms:6.2} {what}").expect("a string");
        if let Some((done, request)) = drive
            && done == now
        {
            drive = None;
            sched.completed(now, &request);
            let who = request.tag.index();
            let open = open_of(&sched, turn).expect("its time has just begun");
            let limit = open.limit.expect("it is known by now");
            let (name, beats) = (names[who], limit.as_millis_f64());
            say(format!("{name} is done; a child has to beat {beats:.2} ms"));
            line.marks
                .push((now, name, request.extent.end(), What::Open(limit)));
            let reader = &readers[who];
            asks[who] = (reader.next < reader.lbas.len()).then(|| now + reader.think);
        } else if let Some(who) = (0..2).find(|who| asks[*who] == Some(now)) {
            asks[who] = None;
            let reader = &mut readers[who];
            let (name, lba) = (reader.names[reader.next], reader.lbas[reader.next]);
            reader.next += 1;
            names[who] = name;
            let before: Vec<Open> = sched.open().collect();
            let extent = Extent::at(lba, 8);
            sched.insert(now, Request::new(Tag(who as u32), Op::Read, extent, now));
            // Among the requests that are closed now, some may have run out of time.
            let parent = before.iter().find(|open| {
                let elapsed = open.since.map_or(Nanos::ZERO, |since| now - since);
                let cost = elapsed + curve.service(open.end, extent.start);
                open_of(&sched, open.turn).is_none() && open.limit.is_none_or(|limit| cost < limit)
            });
            match parent {
                Some(open) => {
                    let of = names_at(&readers, open.end);
                    let size = open.size + 1;
                    say(format!("{name} comes, a child of {of}: a stream of {size}"));
                }
                None => say(format!("{name} comes, nobody's child")),
            }
            line.marks.push((now, name, extent.start, What::Arrives));
        }
        if drive.is_some() {
            continue;
        }
        match sched.dispatch(now) {
            Dispatch::Request(request) => {
                if let Some((since, _)) = wait.take()
                    && since < now
                {
                    line.waits.push((since, now, head));
                }
                let service = curve.service(head, request.extent.start);
                let name = names[request.tag.index()];
                turn += 1;
                let size = open_of(&sched, turn)
                    .expect("it has just been handed out")
                    .size;
                say(format!(
                    "{name} is served in {:.2} ms, {size} in its stream",
                    service.as_millis_f64()
                ));
                line.head.push((now, head));
                line.head.push((now + service, request.extent.end()));
                let until = What::Served(now + service);
                line.marks.push((now, name, request.extent.start, until));
                drive = Some((now + service, request));
                head = request.extent.end();
            }
            Dispatch::IdleUntil(until) => {
                let since = wait.map_or(now, |(since, _)| since);
                if wait.is_none_or(|(_, before)| before != until) {
                    let until = (until - Time::ZERO).as_millis_f64();
                    say(format!("the disk is held, until {until:.2} at most"));
                }
                wait = Some((since, until));
            }
            Dispatch::Empty => wait = None,
        }
    }
    line
}

/// Name of the read that ended at this address.
fn names_at(readers: &[Reader; 2], end: Lba) -> &'static str {
    let mut all = readers
        .iter()
        .flat_map(|reader| reader.lbas.iter().zip(reader.names));
    let found = all.find(|(lba, _)| **lba + 8 == end.get());
    found.expect("somebody did").1
}

/// The timeline as a picture: time to the right, addresses upward.
fn plot(line: &Timeline) -> String {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 520.0;
    const LEFT: f64 = 60.0;
    const BOTTOM: f64 = 50.0;
    let end = line.head.last().expect("something happened").0;
    let end = (end - Time::ZERO).as_millis_f64() + 12.0;
    let x = |time: Time| LEFT + (time - Time::ZERO).as_millis_f64() / end * (WIDTH - LEFT - 20.0);
    // The lower reader's part of the disk is stretched, so that its steps can be seen.
    let y = |lba: Lba| {
        let lba = lba.get() as f64;
        let part = match lba {
            lba if lba < 99_000.0 => lba / 99_000.0 * 0.06,
            lba if lba < 104_000.0 => 0.06 + (lba - 99_000.0) / 5_000.0 * 0.34,
            lba => 0.40 + (lba - 104_000.0) / 1_396_000.0 * 0.60,
        };
        HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - 30.0)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>How a stream forms and is used (threshold 4)</title>\n\
         <style>@media screen and (prefers-color-scheme:dark){{svg text{{fill:#e4e8ec}}[fill=white]{{fill:#14181c}}\
         [stroke=black]{{stroke:#e4e8ec}}[fill=\"#08519c\"]{{fill:#5aa9f0}}[stroke=\"#08519c\"]{{stroke:#5aa9f0}}\
         [fill=\"#9ecae1\"]{{fill:#2f6f9c}}}}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let mut add = |text: String| {
        svg += &text;
        svg.push('\n');
    };
    let curve = curve();
    for (time, _, lba, what) in &line.marks {
        let What::Open(limit) = what else { continue };
        // Until when a child can come, by its address.
        let step = if lba.get() < 200_000 { 100 } else { 10_000 };
        let low = lba.get().saturating_sub(100 * step);
        let edge = (0..=200)
            .map(|index| Lba::new(low + index * step))
            .filter_map(|at| {
                let service = curve.service(*lba, at);
                let inside = at.get() > 0 && at.get() < 1_500_000 && service < *limit;
                inside.then(|| (at, *time + (*limit - service)))
            });
        let edge: Vec<(Lba, Time)> = edge.collect();
        let (Some(first), Some(last)) = (edge.first(), edge.last()) else {
            continue;
        };
        let mut path = format!("M{:.1} {:.1}", x(*time), y(first.0));
        for (at, until) in &edge {
            let _ = write!(path, "L{:.1} {:.1}", x(*until), y(*at));
        }
        let _ = write!(path, "L{:.1} {:.1}Z", x(*time), y(last.0));
        add(format!(
            "<path d=\"{path}\" fill=\"#9ecae1\" fill-opacity=\"0.5\"/>"
        ));
    }
    let path: Vec<String> = line
        .head
        .iter()
        .map(|(at, lba)| format!("{:.1},{:.1}", x(*at), y(*lba)))
        .collect();
    let path = path.join(" ");
    add(format!(
        "<polyline points=\"{path}\" fill=\"none\" stroke=\"#969696\"/>"
    ));
    for (from, to, lba) in &line.waits {
        add(format!(
            "<line x1=\"{:.1}\" y1=\"{3:.1}\" x2=\"{:.1}\" y2=\"{3:.1}\" stroke=\"{}\" \
             stroke-width=\"4\"/>",
            x(*from),
            x(*to),
            "#d94801",
            y(*lba),
        ));
    }
    for (time, name, lba, what) in &line.marks {
        let (x, y) = (x(*time), y(*lba));
        match what {
            What::Arrives => {
                add(format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"white\" stroke=\"#08519c\"/>"
                ));
                let y = y - 8.0;
                add(format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{name}</text>"
                ));
            }
            What::Open(_) => add(format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"#08519c\"/>"
            )),
            What::Served(_) => {}
        }
    }
    let axis = HEIGHT - BOTTOM;
    add(format!(
        "<path d=\"M{LEFT} 20V{axis}H{}\" fill=\"none\" stroke=\"black\"/>",
        WIDTH - 10.0
    ));
    let mut tick = 0.0;
    while tick < end {
        let at = x(Time::ZERO + Nanos::from_millis_f64(tick));
        add(format!(
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
            axis + 18.0
        ));
        tick += 20.0;
    }
    add(format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time, ms</text>",
        WIDTH / 2.0,
        HEIGHT - 12.0
    ));
    add(format!(
        "<text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">\
         address (lower part stretched)</text>",
        axis / 2.0
    ));
    add(String::from(
        "<text x=\"75\" y=\"18\" font-size=\"12\">ring: request comes; dot: it is done; blue: where \
         and when its child can come; orange: the disk is held; grey: the head</text>",
    ));
    svg + "</svg>\n"
}

fn compare(path: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
        std::fs::write(&path, made).expect("it can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == made,
        "{} is stale; HEADTIME_BLESS=1 writes it anew. Now:\n{made}",
        path.display()
    );
}

#[test]
fn the_first_figure() {
    let line = timeline();
    // The figure shows these parts at any times.
    for part in [
        "2 comes, a child of 1",
        "3 comes, a child of 2",
        "4 comes, a child of 3",
    ] {
        assert!(line.text.contains(part), "{part}:\n{}", line.text);
    }
    for name in ["a", "b", "c", "d"] {
        assert!(
            line.text.contains(&format!("{name} comes, nobody's child")),
            "{}",
            line.text
        );
    }
    let served: String = line
        .marks
        .iter()
        .filter(|(.., what)| matches!(what, What::Served(_)))
        .map(|(_, name, ..)| *name)
        .collect();
    assert!(
        served.starts_with("1a2b3c4"),
        "the head leaves and comes back: {served}"
    );
    assert!(served.contains("456"), "5 and 6 are waited for: {served}");
    compare("tests/golden/stream-fig1.txt", &line.text);
    compare("../../docs/pictures/stream-fig1.svg", &plot(&line));
}

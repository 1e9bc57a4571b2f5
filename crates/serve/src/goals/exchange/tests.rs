use super::*;
use headtime_engine::Lane;

fn question() -> Question {
    let (from, span) = (Time::from_nanos(7), Nanos::from_millis(45));
    let lane = Lane(1);
    Question {
        coordinator: u64::MAX,
        session: 2,
        number: 3,
        taken: 4,
        orders: vec![
            GateOrder::Assign { of: 1, lane },
            GateOrder::Window { lane, from, span },
        ],
    }
}

fn answer() -> ServerAnswer {
    let note = |program, nanos, what| Note {
        at: Time::from_nanos(nanos),
        program,
        what,
    };
    let asked = OPS.map(|(_, op)| What::Asked {
        op,
        extent: Extent::at(128, 8),
    });
    let notes = asked.into_iter().chain([What::Done { bytes: 4096 }]);
    let points = [(0, 2_000), (100, 9_000)];
    let points = points.map(|(at, time)| (Sectors::new(at), Nanos::from_nanos(time)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD).unwrap();
    ServerAnswer {
        now: Time::from_nanos(99),
        first: 5,
        notes: (0..)
            .zip(notes)
            .map(|(nth, what)| (nth, note(nth, 90 + u64::from(nth), what)))
            .collect(),
        unseen: 1,
        started: Some(About {
            gate: "windows:lanes=3:period=200ms".parse().unwrap(),
            disks: vec!["disk0".to_owned()],
            programs: vec!["mail".to_owned(), "web".to_owned()],
            seek: Some(Seeks::new(Arc::new(curve), 8)),
        }),
    }
}

#[test]
fn questions_and_answers_are_read_as_they_were_written() {
    assert_eq!(Question::from_text(&question().to_text()), Ok(question()));
    assert_eq!(ServerAnswer::from_text(&answer().to_text()), Ok(answer()));
    let seek = answer().started.unwrap().seek.unwrap();
    assert_eq!(seek.time(400), Nanos::from_nanos(5_500));
}

#[test]
fn each_damage_is_an_error_that_says_what_is_allowed() {
    let text = answer().to_text();
    for (from, to, problem) in [
        (
            "\"version\":1",
            "\"version\":2",
            "version 2 of coordination, and this program has version 1; use the same version",
        ),
        ("\"version\":1", "\"other\":1", "missing field `version`"),
        (
            "\"read\"",
            "\"raed\"",
            "`raed` is no kind of note; allowed are read, write, flush, discard and done",
        ),
        (
            "\"now\":99",
            "\"now\":18446744073709551615",
            "the time is 18446744073709551615; allowed is up to 9223372036854775807",
        ),
        ("\"now\":99", "\"now\":-1", "invalid value"),
        (
            "[0,0,90,",
            "[0,0,9300000000000000000,",
            "the time is 9300000000000000000",
        ),
        (
            "128,8]",
            "18446744073709551615,8]",
            "a note has 18446744073709551615; allowed is up to",
        ),
        (
            "128,8]",
            "128,4294967297]",
            "a note has 4294967297; allowed is up to 4294967296",
        ),
        (
            "\"done\",4096,0]",
            "\"done\",4294967297,0]",
            "a note has 4294967297; allowed is up to 4294967296",
        ),
        ("windows(depth):lanes=3", "mirrors", "mirrors"),
        ("[100,9000]", "[0,9000]", "seek: point 1"),
        ("\"disks\":[\"disk0\"]", "\"disks\":7", "invalid type"),
    ] {
        assert!(text.contains(from), "{text}");
        let error = ServerAnswer::from_text(&text.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    let text = question().to_text();
    for (order, problem) in [
        (
            "depth 1",
            "order `depth 1`: allowed are assign, keep, and window",
        ),
        ("assign 1 1 1", "\"1\" stands behind the order"),
        ("assign 1 256", "the lane is 256, which is too large"),
        (
            "window 1 9223372036854775807 1",
            "order `window 1 9223372036854775807 1`",
        ),
    ] {
        let error = Question::from_text(&text.replacen("assign 1 1", order, 1)).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    for end in 0..text.len() {
        assert!(
            Question::from_text(&text[..end]).is_err(),
            "cut off at byte {end}"
        );
    }
}

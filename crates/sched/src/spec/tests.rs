//! Tests of the texts of schedulers.

use super::*;
use crate::{DeadlineConfig, NoPositioning};
use proptest::prelude::*;
use std::vec;

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    text.parse::<Spec>().expect_err(text).to_string()
}

#[test]
fn writes_what_it_read() {
    for (text, written) in [
        ("noop", "noop"),
        (" deadline ", "deadline"),
        ("fcfs", "noop"),
        ("none", "noop"),
        ("sptf-sw60", "sptf-sw60"),
        ("sptf-sw0", "sptf-sw0"),
        (
            "deadline:fifo_batch=8:read_expire=250ms",
            "deadline:read_expire=250ms:fifo_batch=8",
        ),
        (
            "mq-deadline : front_merges = off : write_expire = 1.5 s",
            "mq-deadline:write_expire=1.5s:front_merges=false",
        ),
        ("clook:batch=16", "clook:batch=16"),
        ("sptf:age_weight=0.030", "sptf:age_weight=0.03"),
        ("sptf:age_weight=0", "sptf:age_weight=0"),
    ] {
        assert_eq!(spec(text).to_string(), written);
        assert_eq!(spec(written), spec(text));
    }
}

#[test]
fn says_what_is_wrong_and_what_is_allowed() {
    let known: Vec<String> = policies().map(|info| info.title().to_string()).collect();
    for (text, message) in [
        (
            "",
            "scheduler \"\": a scheduler has a name, as in \"deadline\"",
        ),
        (
            ":batch=1",
            "scheduler \":batch=1\": a scheduler has a name, as in \"deadline\"",
        ),
        (
            "budget",
            "scheduler \"budget\": there is no policy \"budget\". Known are POLICIES",
        ),
        (
            "dedline:fifo_batch=8",
            "scheduler \"dedline:fifo_batch=8\": there is no policy \"dedline\"; did you mean \
             \"deadline\"? Known are POLICIES",
        ),
        (
            "sptf-sw",
            "scheduler \"sptf-sw\": sptf-sw is followed by a number from 0 to 10000, as in \
             \"sptf-sw60\", not by \"\"",
        ),
        (
            "sptf-sw99999999999999999999",
            "scheduler \"sptf-sw99999999999999999999\": sptf-sw is followed by a number from 0 \
             to 10000, as in \"sptf-sw60\", not by \"99999999999999999999\"",
        ),
        (
            "clook:bacth=1",
            "scheduler \"clook:bacth=1\": clook has no option \"bacth\"; did you mean \
             \"batch\"? Known are batch",
        ),
        (
            "noop:batch=1",
            "scheduler \"noop:batch=1\": noop has no option \"batch\". It has none",
        ),
        (
            "clook:batch",
            "scheduler \"clook:batch\": \"batch\" is not an option; write key=value after each \
             colon",
        ),
        (
            "clook:",
            "scheduler \"clook:\": \"\" is not an option; write key=value after each colon",
        ),
        (
            "clook:batch=-1",
            "scheduler \"clook:batch=-1\": batch is \"-1\"; allowed is 0 to 1000000",
        ),
        (
            "deadline:read_expire=250",
            "scheduler \"deadline:read_expire=250\": read_expire is \"250\"; a duration needs \
             its unit: ns, us, ms, s, m, h or d, as in 30ms",
        ),
        (
            "deadline:read_expire=2d",
            "scheduler \"deadline:read_expire=2d\": read_expire is \"2d\"; allowed is 0ns to \
             86400s",
        ),
        (
            "deadline:read_expire=213503d",
            "scheduler \"deadline:read_expire=213503d\": read_expire is \"213503d\"; allowed is 0ns \
             to 86400s",
        ),
        (
            "sptf:age_weight=18446744073710",
            "scheduler \"sptf:age_weight=18446744073710\": age_weight is \"18446744073710\"; allowed \
             is 0 to 1000",
        ),
        (
            "sptf:age_weight=30ms",
            "scheduler \"sptf:age_weight=30ms\": age_weight is \"30ms\"; not a plain number; \
             write for example 0.03, without a unit",
        ),
        (
            "sptf:age_weight=0.0000001",
            "scheduler \"sptf:age_weight=0.0000001\": age_weight is \"0.0000001\"; at most six \
             digits may follow the point",
        ),
        (
            "sptf:age_weight=1000.1",
            "scheduler \"sptf:age_weight=1000.1\": age_weight is \"1000.1\"; allowed is 0 to \
             1000",
        ),
        (
            "sptf-sw60:age_weight=1",
            "scheduler \"sptf-sw60:age_weight=1\": sptf-sw has no option \"age_weight\". It \
             has none",
        ),
        (
            "deadline:front_merges=1",
            "scheduler \"deadline:front_merges=1\": front_merges is \"1\"; allowed is true or \
             false",
        ),
        (
            "clook:batch=1:batch=1",
            "scheduler \"clook:batch=1:batch=1\": batch is given twice",
        ),
        (
            "noop(sstf)",
            "scheduler \"noop(sstf)\": noop wraps no other policy",
        ),
        ("noop(", "scheduler \"noop(\": a parenthesis has no partner"),
        ("noop)", "scheduler \"noop)\": a parenthesis has no partner"),
        (
            "noop(a)b)",
            "scheduler \"noop(a)b)\": a parenthesis has no partner",
        ),
        (
            "noop(sstf)x",
            "scheduler \"noop(sstf)x\": \"x\" follows a closing parenthesis; only options can, \
             as in \":key=value\"",
        ),
    ] {
        assert_eq!(error(text), message.replace("POLICIES", &known.join(", ")));
    }
}

#[test]
fn a_slice_is_of_streams_or_of_processes_that_are_known() {
    let ms = |ms| Some(Nanos::from_millis(ms));
    for (text, with_processes, without) in [
        ("stream", ms(124), ms(124)),
        ("stream(noop):slice=20ms", ms(20), ms(20)),
        ("clairvoyant:slice=0ns", ms(0), ms(0)),
        ("cfq", ms(100), None),
        ("cfq:slice_sync=7ms", ms(7), None),
        ("bfq", ms(125), None),
        ("deadline", None, None),
    ] {
        let slices = [true, false].map(|known| spec(text).slice(known));
        assert_eq!(slices, [with_processes, without], "{text}");
    }
    // Each policy with slices has an option for their length.
    for info in policies() {
        if let Slices::ToStreams(key) | Slices::ToProcesses(key) = info.slices {
            let option = info.option(key).map(|option| option.default);
            assert!(matches!(option, Some(Value::Duration(_))), "{}", info.name);
        }
    }
}

#[test]
fn a_policy_that_needs_positions_says_so() {
    let refused = |text: &str| match spec(text).build(None::<NoPositioning>) {
        Ok(_) => panic!("{text} was built without positions"),
        Err(error) => error.to_string(),
    };
    assert!(spec("sptf").needs().positioning && !spec("sstf").needs().positioning);
    assert_eq!(
        refused("sptf-sw60"),
        "scheduler \"sptf-sw60\": sptf-sw decides by where sectors are and needs a drive \
         profile to know that"
    );
}

#[test]
fn lists_are_split_at_the_top_level_only() {
    let list = Spec::parse_list("noop, deadline:fifo_batch=8,sptf-sw60").unwrap();
    assert_eq!(
        list,
        ["noop", "deadline:fifo_batch=8", "sptf-sw60"].map(spec)
    );
    assert_eq!(split_top("a(b,c:d),e", ','), ("a(b,c:d)", Some("e")));
    assert_eq!(split_top("a(b,c:d):e", ':'), ("a(b,c:d)", Some("e")));
    for text in ["", "noop,", ",noop", "noop,,sstf"] {
        let error = Spec::parse_list(text).unwrap_err();
        assert_eq!(error.kind, SpecErrorKind::Empty, "{text}");
    }
}

#[test]
fn what_a_policy_chooses_among_is_read_written_and_needed() {
    for (text, written) in [
        ("nise", "nise"),
        ("nise(noop)", "nise(noop)"),
        (
            "nise( noop , as : hz=1000 @ 1 ) : alpha=5",
            "nise(noop,anticipatory:hz=1000@1):alpha=5",
        ),
        (
            "nise(stream(sstf)@3,noop,sptf-sw60@256):th2=1/2",
            "nise(stream(sstf)@3,noop,sptf-sw60@256):th2=1/2",
        ),
        (
            "nise(noop,sstf,clook):by=trial",
            "nise(noop,sstf,clook):by=trial",
        ),
    ] {
        let read = spec(text);
        assert_eq!(read.to_string(), written);
        assert_eq!(spec(written), read);
    }
    let needs = spec("nise(stream(sstf)@3,noop,sptf-sw60):by=trial").needs();
    assert!(needs.positioning && needs.curve);
    let longest = spec("nise(noop,as:antic_expire=1h):by=trial").longest_option();
    assert_eq!(longest, Nanos::from_secs(3600));
    let list = Spec::parse_list("noop,nise(noop,as@1),sstf").unwrap();
    assert_eq!(list, ["noop", "nise(noop,as@1)", "sstf"].map(spec));
}

#[test]
fn what_cannot_be_chosen_among_is_an_error_that_says_why() {
    let error = |text: &str| text.parse::<Spec>().unwrap_err().kind.to_string();
    let form = "; nise chooses among 1 to 8 schedulers, with the depth of each if that is not the engine's, as in \
                \"nise(noop,anticipatory@1)\"";
    for depth in ["0", "257", "x", "", "1@2"] {
        assert_eq!(
            error(&format!("nise(noop,as@{depth})")),
            format!("depth \"{depth}\" is not 1 to 256{form}")
        );
    }
    let nine = ["noop"; 9].join(",");
    assert_eq!(
        error(&format!("nise({nine}):by=trial")),
        format!("more than 8 are named{form}")
    );
    let itself = "nise chooses among schedulers, and cannot be one of them";
    assert_eq!(error("nise(noop,nise@1)"), itself);
    let deep = format!("{}noop{}", "nise(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(error(&deep), itself);
    assert_eq!(
        error("stream(nise)"),
        "nise may wait, and only a policy that never waits can be wrapped"
    );
    for text in ["nise()", "nise(noop,)", "nise(,noop)", "nise(@1)"] {
        assert_eq!(error(text), SpecErrorKind::Empty.to_string(), "{text}");
    }
    assert_eq!(
        error("nise:th2=20/80"),
        "th2 is \"20/80\"; for two schedulers it is one number"
    );
    let three = "for 3 schedulers it is 2 numbers, each higher than the one before";
    for th2 in ["50", "80/20", "20/20", "1/2/3"] {
        assert_eq!(
            error(&format!("nise(noop,sstf,as@1):th2={th2}")),
            format!("th2 is \"{th2}\"; {three}")
        );
    }
}

/// Policies that wrap, for the parser: there is none yet to build.
mod wrapping {
    use super::*;

    static STREAM: PolicyInfo = PolicyInfo {
        name: "stream",
        inner: Some("deadline"),
        waits: true,
        options: &[OptionInfo::count("threshold", 4, (1, 100), "")],
        ..PolicyInfo::PLAIN
    };
    static FAIR: PolicyInfo = PolicyInfo {
        name: "fair",
        inner: Some("noop"),
        ..PolicyInfo::PLAIN
    };

    fn read(text: &str) -> Result<Spec, SpecErrorKind> {
        let mut table: Vec<&'static PolicyInfo> = policies().collect();
        table.extend([&STREAM, &FAIR]);
        parse(text, &table).map_err(|error| error.kind)
    }

    #[test]
    fn the_inner_policy_is_read_and_written() {
        for (text, written) in [
            ("stream", "stream(deadline)"),
            ("stream(sstf):threshold=5", "stream(sstf):threshold=5"),
            (
                "stream( deadline : fifo_batch=8 ) : threshold=5",
                "stream(deadline:fifo_batch=8):threshold=5",
            ),
            ("stream(fair(sptf))", "stream(fair(sptf))"),
        ] {
            let spec = read(text).unwrap();
            assert_eq!(spec.to_string(), written);
            assert_eq!(read(written), Ok(spec));
        }
        assert!(read("stream(fair(sptf))").unwrap().needs().positioning);
    }

    #[test]
    fn what_waits_is_not_wrapped_and_nesting_has_an_end() {
        let waits = SpecErrorKind::InnerWaits { inner: "stream" };
        assert_eq!(read("stream(stream)"), Err(waits.clone()));
        assert_eq!(read("fair(stream(noop))"), Err(waits));
        assert!(matches!(read("stream()"), Err(SpecErrorKind::Empty)));
        let deep = format!("{}noop{}", "fair(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(read(&deep), Err(SpecErrorKind::Nesting));
    }
}

#[test]
fn records_are_complete_and_consistent() {
    let mut names = vec![];
    for info in policies() {
        names.push(info.name);
        names.extend(info.aliases);
        let words = info.idea.split_whitespace().count();
        assert!((1..=6).contains(&words), "{}: {words} words", info.name);
        for text in [info.bound, info.source, info.avoid] {
            assert!(!text.is_empty(), "{}", info.name);
        }
        for option in info.options {
            assert!(!option.help.is_empty());
            let repeated = info.options.iter().filter(|other| other.key == option.key);
            assert_eq!(repeated.count(), 1, "{}: {}", info.name, option.key);
            // The default is read back, so it is in its range and of its type.
            let text = format!("{}={}", option.key, option.default);
            assert_eq!(read_option(info, &text), Ok((option.key, option.default)));
        }
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name is taken twice");
}

#[test]
fn defaults_are_those_of_the_policy() {
    let options =
        |text: &str| -> Vec<Value> { spec(text).options().map(|(_, value)| value).collect() };
    let info = spec("deadline").info();
    let built = DeadlineConfig::from_options(&Options::new(info, None, &[]));
    assert_eq!(built, DeadlineConfig::DEFAULT);
    assert_eq!(options("clook:batch=3"), [Value::Count(3)]);
    assert_eq!(options("deadline:fifo_batch=8")[2], Value::Count(8));
    assert_eq!(options("deadline")[2], Value::Count(16));
}

/// Texts that are nearly right.
fn texts() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "noop",
        "deadline",
        "sptf-sw",
        "60",
        "(",
        ")",
        ":",
        ",",
        "=",
        " ",
        "fifo_batch",
        "8",
        "read_expire",
        "250ms",
        "age_weight",
        "0.03",
        "true",
        "front_merges",
        "é",
        "-",
    ]);
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn never_panics_and_round_trips(text in prop_oneof![texts(), any::<String>()]) {
        if let Ok(spec) = text.parse::<Spec>() {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        if let Ok(list) = Spec::parse_list(&text) {
            let written: Vec<String> = list.iter().map(Spec::to_string).collect();
            prop_assert_eq!(Spec::parse_list(&written.join(",")), Ok(list));
        }
    }
}

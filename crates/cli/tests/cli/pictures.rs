//! Pictures, and output on a terminal.

use super::common::{data, run, scratch};
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_window_outside_the_run_is_refused() {
    let plot = scratch("window").join("picture.svg");
    let plot = plot.to_str().unwrap();
    let window = |window: &str, extra: &[&str]| {
        let mut args = vec!["sim", "run", "small.toml", "-s", "noop", "--plot", plot];
        args.extend(["--plot-window", window]);
        args.extend(extra);
        run(&args)
    };
    // The first run's length is known before the run, the second one's only after.
    for (extra, span) in [
        (&["--set", "run.duration=3s"][..], "0s..3s"),
        (&[][..], "0s..3."),
    ] {
        let output = window("400s..500s", extra);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(&format!("within {span}")), "{text}");
        assert!(!Path::new(plot).exists());
    }
    // This window lies partly within the run.
    assert!(window("1s..500s", &[]).status.success());
}

#[test]
fn a_picture_shows_no_more_runs_than_can_be_told_apart() {
    let plot = scratch("many").join("picture.svg");
    let plot = plot.to_str().unwrap();
    let draw = |schedulers: &str| {
        let args = ["sim", "run", "small.toml", "--plot", plot, "-s", schedulers];
        let output = run(&args);
        assert!(output.status.success());
        let stderr = String::from_utf8(output.stderr).unwrap();
        (std::fs::read_to_string(plot).unwrap(), stderr)
    };
    let (picture, stderr) = draw("noop,sstf,clook,sptf,cfq,nise");
    assert!(!picture.contains("shows the first") && !stderr.contains("shows the first"));
    // At two depths each.
    let (picture, stderr) = draw("noop,sstf,clook,sptf,cfq,nise,deadline");
    let note = "shows the first 12 of 14 runs";
    assert!(stderr.contains(note), "{stderr}");
    assert!(picture.contains(note));
    // Over its panel, in the legend and at its bar.
    assert_eq!(picture.matches(">clook @2<").count(), 3);
    assert_eq!(picture.matches(">nise @2<").count(), 0);
}

/// Simulated seconds of a run that takes longer than the time after which progress is shown.
#[cfg(target_os = "linux")]
const SECONDS: u32 = if cfg!(debug_assertions) {
    2_000
} else {
    10_000
};

/// Progress was drawn by the threads of the runs while the main thread held standard error locked:
/// the command stopped for good as soon as there was something to show. Needs a terminal, which
/// `script` makes, and `timeout`, so that the test ends if it happens again.
#[test]
#[cfg(target_os = "linux")]
fn progress_on_a_terminal_does_not_stop_the_command() {
    let scenario = data().join("../../../../experiments/random-4k.toml");
    let arguments = format!(
        "sim run {} -s noop,sstf --set run.duration={SECONDS}s",
        scenario.display()
    );
    let Some(text) = on_a_terminal("terminal", &arguments) else {
        return;
    };
    assert!(text.contains("to go"), "no progress was shown: {text}");
    // Bold headings, and the table after the bar is gone.
    assert!(text.contains("\u{1b}[1mscheduler"), "{text}");
}

/// A sweep says how many of its combinations are done.
#[test]
#[cfg(target_os = "linux")]
fn progress_of_a_sweep_counts_its_combinations() {
    let scenario = data().join("../../../../experiments/random-4k.toml");
    let arguments = format!(
        "sweep {} --vary seed=1,2,3 --set schedulers=noop --set run.duration={SECONDS}s",
        scenario.display()
    );
    let Some(text) = on_a_terminal("terminal-sweep", &arguments) else {
        return;
    };
    assert!(
        text.contains(" of 3, ") && text.contains("to go"),
        "no progress was shown: {text}"
    );
}

/// Output of a command on a terminal. `None` if the machine has no program for that.
#[cfg(target_os = "linux")]
fn on_a_terminal(name: &str, arguments: &str) -> Option<String> {
    let typescript = scratch(name).join("typescript");
    let command = format!("{} {arguments}", env!("CARGO_BIN_EXE_headtime"));
    let output = std::process::Command::new("timeout")
        .args(["100", "script", "-qec", &command])
        .arg(&typescript)
        // Without a name the terminal counts as a terminal without progress.
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        println!("skipped: no `timeout` here");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(127) {
        println!("skipped: no `script` here");
        return None;
    }
    assert!(output.status.success(), "{:?}: {text}", output.status);
    Some(text)
}

//! Runs the command.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Where the files of these tests are, and where the command runs.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The command, without environment variables that would change its output.
pub fn headtime(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headtime"));
    command.args(args).current_dir(data()).stdin(Stdio::null());
    for name in [
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "FORCE_COLOR",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs the command to its end.
pub fn run(args: &[&str]) -> Output {
    headtime(args).output().expect("the command can be started")
}

/// Exit code and standard error of a command that ends by itself.
pub fn ended(args: &[&str]) -> (i32, String) {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).expect("the command writes UTF-8");
    (output.status.code().expect("no signal ended it"), stderr)
}

/// Standard output of a command that succeeds.
pub fn stdout(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).expect("the command writes UTF-8")
}

/// Exit code and both outputs, as a snapshot holds them.
pub fn all(args: &[&str]) -> String {
    let output = run(args);
    let code = output
        .status
        .code()
        .map_or("signal".to_owned(), |code| code.to_string());
    let mut text = format!("$ headtime {}\nexit code {code}\n", args.join(" "));
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            let content = String::from_utf8_lossy(bytes);
            text.push_str(&format!("--- {name}\n{}\n", content.trim_end()));
        }
    }
    text
}

/// A directory of this test's own, empty.
pub fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the target directory can be written to");
    path
}

/// Output of a command that succeeds, read as JSON.
pub fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

/// The keys of an object.
pub fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// The value as a number, which it has to be.
pub fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

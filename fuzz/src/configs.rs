//! Checks on the readers of what else is written in TOML: a server's configuration, a curve, a figure.

use headtime_cli::live::config::Config;
use headtime_lab::figure::{Figure, Scale};
use headtime_probe::Learned;
use headtime_units::Nanos;

/// Reads `bytes` as each of them.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Config::parse("FILE", text) {
        Ok(config) => {
            for disk in &config.disks {
                assert!(disk.timeout.is_none_or(|timeout| timeout <= Nanos::LONGEST));
            }
        }
        Err(error) => named(&error.to_string()),
    }
    match Learned::from_toml("FILE", text) {
        Ok(learned) => {
            let again = Learned::from_toml("AGAIN", &learned.to_toml()).expect("own output");
            assert_eq!(again.curve(), learned.curve());
        }
        Err(error) => named(&error.to_string()),
    }
    for scale in [Scale::Full, Scale::Quick] {
        match Figure::parse("FILE", text, scale) {
            Ok(figure) => assert!(!figure.variants.is_empty()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn named(error: &str) {
    assert!(error.starts_with("FILE"), "{error}");
}

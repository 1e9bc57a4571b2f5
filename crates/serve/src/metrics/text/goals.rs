//! Metrics of programs with goals.

use super::Page;
use super::writer::{Labels, Writer};
use crate::goals::{ProgramStatus, STATES};
use headtime_qos::State;
use prometheus_client::registry::Unit;
use std::fmt;

/// A metric of a planned program: name, help, unit unless the name has the unit, and a function for the value.
type PlannedGauge = (&'static str, &'static str, Option<Unit>, fn(&State) -> f64);

const PLANNED: [PlannedGauge; 6] = [
    (
        "program_bound_bytes_per_second",
        "Throughput that the goals of a program demand now",
        None,
        |state| state.bound.0 as f64,
    ),
    (
        "program_required_bytes_per_second",
        "Throughput that the bounds of a program demanded in the last period",
        None,
        |state| state.required.0 as f64,
    ),
    (
        "program_served_bytes_per_second",
        "Throughput of a program in the last period",
        None,
        |state| state.served.0 as f64,
    ),
    (
        "program_window",
        "Length of the window of a program in the last plan",
        Some(Unit::Seconds),
        |state| state.window.as_secs_f64(),
    ),
    (
        "program_lost",
        "Time by which a program is set back",
        Some(Unit::Seconds),
        |state| state.lost.as_secs_f64(),
    ),
    (
        "program_left_profile",
        "1 if the run of a program has left its profile",
        None,
        |state| f64::from(u8::from(state.drift.is_some())),
    ),
];

fn label(program: &ProgramStatus) -> Labels<'_> {
    vec![("program", program.name.as_str())]
}

impl Page {
    pub(super) fn write_goals(&self, out: &mut Writer<'_>) -> fmt::Result {
        let Some((programs, unseen)) = &self.programs else {
            return Ok(());
        };
        let states = programs.iter().flat_map(|program| {
            STATES.map(|state| {
                let mut labels = label(program);
                labels.push(("state", state));
                (labels, f64::from(u8::from(state == program.state)))
            })
        });
        let help = "1 for the state of a program: none, waiting, running, behind, late, met, missed or refused";
        out.gauges(("program_state", help, None), states)?;
        let left = programs
            .iter()
            .filter_map(|program| Some((label(program), program.left_s?)));
        let help = "Time to the deadline of a program that runs with a goal; negative after it";
        out.gauges(("program_left", help, Some(Unit::Seconds)), left)?;
        for (name, help, unit, value) in PLANNED {
            let planned = programs
                .iter()
                .filter_map(|program| Some((label(program), value(program.planned.as_ref()?))));
            out.gauges((name, help, unit), planned)?;
        }
        out.counters(
            (
                "program_requests_unseen",
                "Requests that came faster than bounds could take them",
                None,
            ),
            [(Vec::new(), *unseen)],
        )
    }
}

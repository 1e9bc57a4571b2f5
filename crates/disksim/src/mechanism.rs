//! How the arm moves and the platters turn: `dm_mech_g1`.

use crate::error::ImportError;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::run::Run;
use crate::syntax::Block;
use headtime_disk::profile::{Interpolation, Rotation, SeekCurve, SeekSpec};
use headtime_units::Nanos;

/// Reads the mechanics, and the table of seek times that they name.
pub(crate) fn mechanics(run: &mut Run, block: &Block) -> Result<(Rotation, SeekSpec), ImportError> {
    let fields = Fields::new(block);
    if block.kind != "dm_mech_g1" {
        let message = "not supported; only dm_mech_g1 is";
        return Err(fields.error(&block.kind, message));
    }
    access_time(&fields, &mut run.found)?;
    // Given for every kind of seek, and used by one.
    fields.ignore(&[
        "Constant access time",
        "Average seek time",
        "Constant seek time",
        "Single cylinder seek time",
        "Full strobe seek time",
        "Full seek curve",
        "First ten seek times",
        "HPL seek equation values",
    ]);
    let three = || -> Result<(Nanos, Nanos, Nanos), ImportError> {
        Ok((
            fields.required_millis("Single cylinder seek time")?,
            fields.required_millis("Average seek time")?,
            fields.required_millis("Full strobe seek time")?,
        ))
    };
    let mut write = None;
    let read = match fields.required_text("Seek type")? {
        "extracted" => {
            let name = fields.required_text("Full seek curve")?;
            let text = run.read(name, &block.file, fields.line_of("Full seek curve"))?;
            let (read, other) = table(name, &text, &mut run.found)?;
            write = other;
            read
        }
        "hpl" => hpl(&fields, false)?,
        "hplplus10" => hpl(&fields, true)?,
        "curve" => {
            let (single, average, full) = three()?;
            SeekCurve::Curve {
                single,
                average,
                full,
            }
        }
        "linear" => {
            let (single, average, full) = three()?;
            SeekCurve::Linear {
                single,
                average,
                full,
            }
        }
        "constant" => SeekCurve::Constant(fields.required_millis("Constant seek time")?),
        other => {
            let message = format!(
                "{other} is not supported; supported are extracted, hpl, hplplus10, curve, linear \
                 and constant"
            );
            return Err(fields.error("Seek type", message));
        }
    };
    let rpm = fields.required_number("Rotation speed (in rpms)", 60.0, 60_000.0)?;
    let spread = fields.required_number("Percent error in rpms", 0.0, 100.0)?;
    if spread > 0.0 {
        run.found.note(format!(
            "{}: `Percent error in rpms` is {spread}; the drive turns at its nominal speed, as in \
             DiskSim (noise.speed_ppm varies it)",
            block.file
        ));
    }
    let seek = SeekSpec {
        read,
        write,
        head_switch: fields.required_millis("Head switch time")?,
        write_settle: fields.required_signed_millis("Add. write settling delay")?,
    };
    fields.finish(&mut run.found)?;
    Ok((Rotation { rpm }, seek))
}

/// DiskSim can leave out rotation, or all of mechanics; here both are always there.
fn access_time(fields: &Fields, found: &mut Findings) -> Result<(), ImportError> {
    let key = "Access time type";
    let instead = match fields.required_text(key)? {
        "trackSwitchPlusRotation" => return Ok(()),
        kind @ "averageRotation" => (kind, "half a turn in place of each wait for a sector"),
        kind @ "constant" => (kind, "one time for every access"),
        other => {
            let message = format!(
                "{other} is not allowed; allowed are trackSwitchPlusRotation, averageRotation and \
                 constant"
            );
            return Err(fields.error(key, message));
        }
    };
    found.note(format!(
        "{}:{}: `{key}` is {}, which is {}; taken as trackSwitchPlusRotation, with seeks and rotation \
         from the other parameters",
        fields.block.file,
        fields.line_of(key),
        instead.0,
        instead.1
    ));
    Ok(())
}

fn hpl(fields: &Fields, first_ten: bool) -> Result<SeekCurve, ImportError> {
    let key = "HPL seek equation values";
    // The last one may be -1, which stands for none.
    let values = fields.numbers(key, -1.0)?;
    let &[
        split,
        root_base,
        root_factor,
        line_base,
        line_factor,
        single,
    ] = values.as_slice()
    else {
        let message = format!("{} values; there are six", values.len());
        return Err(fields.error(key, message));
    };
    if values[..5].iter().any(|&value| value < 0.0) {
        return Err(fields.error(key, "only the last value may be negative"));
    }
    if split > f64::from(1 << 24) || values[1..].iter().any(|&value| value > 4000.0) {
        return Err(fields.error(
            key,
            "cylinders up to 2^24 and milliseconds up to 4000 are allowed",
        ));
    }
    let first = if first_ten {
        let key = "First ten seek times";
        let times = fields.numbers(key, 0.0)?;
        if times.len() != 10 || times.iter().any(|&time| time > 4000.0) {
            return Err(fields.error(key, "should be ten times of up to 4000 ms"));
        }
        times.into_iter().map(Nanos::from_millis_f64).collect()
    } else if single >= 0.0 {
        vec![Nanos::from_millis_f64(single)]
    } else {
        Vec::new()
    };
    Ok(SeekCurve::Hpl {
        split: split as u32,
        root_base: Nanos::from_millis_f64(root_base),
        root_factor: Nanos::from_millis_f64(root_factor),
        line_base: Nanos::from_millis_f64(line_base),
        line_factor: Nanos::from_millis_f64(line_factor),
        first,
    })
}

/// A table of distances and times: for reads, their deviation, and for writes. The last two may be
/// missing.
fn table(
    name: &str,
    text: &str,
    found: &mut Findings,
) -> Result<(SeekCurve, Option<SeekCurve>), ImportError> {
    let mut reads: Vec<(u32, Nanos)> = Vec::new();
    let mut writes: Vec<(u32, Nanos)> = Vec::new();
    let mut announced = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let error = |message: String| ImportError::Syntax {
            file: name.to_string(),
            line: index + 1,
            message,
        };
        if let Some(count) = line.strip_prefix("Seek distances measured:") {
            let count = count.trim().parse::<usize>();
            announced =
                Some(count.map_err(|_| {
                    error(format!("`{line}` should end in the number of distances"))
                })?);
            continue;
        }
        let mut parts = line.split(',').map(str::trim);
        let distance = parts.next().and_then(|text| text.parse::<u32>().ok());
        let time = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
        let read = time(parts.next());
        let (Some(distance), Some(read)) = (distance, read) else {
            return Err(error(format!(
                "`{line}` should be `cylinders, milliseconds`"
            )));
        };
        let write = time(parts.nth(1));
        for millis in [Some(read), write].into_iter().flatten() {
            if !(0.0..=4000.0).contains(&millis) {
                return Err(error(format!(
                    "{millis} ms is not allowed; allowed is 0 to 4000"
                )));
            }
        }
        if distance == 0 {
            found.note(format!("{name}:{}: a seek over no cylinders", index + 1));
            continue;
        }
        if let Some(&(last, _)) = reads.last()
            && last >= distance
        {
            return Err(error(format!(
                "distance {distance} after {last}; distances go up, each once"
            )));
        }
        reads.push((distance, Nanos::from_millis_f64(read)));
        writes.extend(write.map(|write| (distance, Nanos::from_millis_f64(write))));
    }
    if reads.is_empty() {
        return Err(ImportError::Syntax {
            file: name.to_string(),
            line: 1,
            message: "there are no seek times in it".to_string(),
        });
    }
    if let Some(announced) = announced.filter(|&announced| announced != reads.len()) {
        found.warn(format!(
            "{name}: has {} distances, but announces {announced}; is it complete?",
            reads.len()
        ));
    }
    if !writes.is_empty() && writes.len() < reads.len() {
        found.warn(format!(
            "{name}: {} of {} distances have a time for writes; the others take the line between those",
            writes.len(),
            reads.len()
        ));
    }
    let curve = |points| SeekCurve::Table {
        points,
        interpolation: Interpolation::Linear,
    };
    let write = (!writes.is_empty() && writes != reads).then(|| curve(writes));
    Ok((curve(reads), write))
}

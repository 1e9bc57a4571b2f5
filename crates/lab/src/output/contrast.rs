//! Sentence that states the largest difference between the rows of a table.

/// Smallest ratio of two rates that is stated. A run of 10 s varies by 3 %.
const LEAST: f64 = 1.1;

/// Largest number of parts with a sentence each.
const PARTS: usize = 4;

/// All requests of a run, or the requests of one workload or program.
#[derive(Clone, Debug)]
pub struct Part {
    /// Name in the sentence; empty for all requests.
    pub name: String,
    /// Bytes or requests a second.
    pub rate: f64,
    /// Response that 99 % of the requests do not exceed, in ms.
    pub p99_ms: f64,
}

/// A row, with its parts in the same order as in other rows.
#[derive(Clone, Debug)]
pub struct Contrasted {
    /// Name of the row in the sentence.
    pub name: String,
    /// Everything of the run but scheduler and gate. Only rows with equal text are compared.
    pub of: String,
    pub parts: Vec<Part>,
}

/// A sentence for each part that some row serves faster than the first row does. Empty if the rows differ in more than scheduler and gate.
pub fn contrasts(rows: &[Contrasted]) -> Vec<String> {
    let Some((first, others)) = rows.split_first() else {
        return Vec::new();
    };
    let is_same =
        |row: &Contrasted| row.of == first.of && names(&row.parts).eq(names(&first.parts));
    if first.parts.len() > PARTS || !others.iter().all(is_same) {
        return Vec::new();
    }
    let parts = 0..first.parts.len();
    parts
        .filter_map(|part| sentence(first, others, part))
        .collect()
}

fn names(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().map(|part| part.name.as_str())
}

fn sentence(first: &Contrasted, others: &[Contrasted], part: usize) -> Option<String> {
    let usual = &first.parts[part];
    let best = others
        .iter()
        .max_by(|one, other| one.parts[part].rate.total_cmp(&other.parts[part].rate))?;
    let times = |row: &Contrasted, part: usize| row.parts[part].rate / first.parts[part].rate;
    let ratio = times(best, part);
    if !ratio.is_finite() || ratio < LEAST {
        return None;
    }
    let whose = match usual.name.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    let costs = (0..first.parts.len()).filter(|other| *other != part);
    let costs = costs.map(|other| {
        format!(
            " {} has {:.2} times as much.",
            best.parts[other].name,
            times(best, other)
        )
    });
    Some(format!(
        "{whose}{} serves {ratio:.1} times as much as {}. The slowest 1 % take {} ms, and {} ms under {}.{}",
        best.name,
        first.name,
        rounded(best.parts[part].p99_ms),
        rounded(usual.p99_ms),
        first.name,
        costs.collect::<String>(),
    ))
}

/// Three digits are enough for a comparison.
fn rounded(ms: f64) -> String {
    match ms {
        ms if ms < 9.95 => format!("{ms:.2}"),
        ms if ms < 99.5 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, parts: &[(&str, f64, f64)]) -> Contrasted {
        let part = |(name, rate, p99_ms): &(&str, f64, f64)| Part {
            name: (*name).to_owned(),
            rate: *rate,
            p99_ms: *p99_ms,
        };
        Contrasted {
            name: name.to_owned(),
            of: String::new(),
            parts: parts.iter().map(part).collect(),
        }
    }

    #[test]
    fn the_best_row_is_compared_with_the_first() {
        let rows = [
            row("a", &[("", 10.0, 63.4)]),
            row("b", &[("", 41.0, 387.1)]),
            row("c", &[("", 12.0, 5.0)]),
        ];
        let said =
            "b serves 4.1 times as much as a. The slowest 1 % take 387 ms, and 63.4 ms under a.";
        assert_eq!(contrasts(&rows), [said]);
    }

    #[test]
    fn each_part_has_a_sentence_with_the_cost_for_others() {
        let rows = [
            row("a", &[("vm", 5.0, 1_000.0), ("scrub", 250.0, 70.0)]),
            row("b", &[("vm", 80.0, 100.0), ("scrub", 15.0, 900.0)]),
        ];
        let said = "vm: b serves 16.0 times as much as a. The slowest 1 % take 100 ms, and 1000 ms under a. \
                    scrub has 0.06 times as much.";
        assert_eq!(contrasts(&rows), [said]);
    }

    #[test]
    fn nothing_is_said_without_a_difference_or_of_different_loads() {
        let rows = |rate| [row("a", &[("", 10.0, 1.0)]), row("b", &[("", rate, 1.0)])];
        assert!(contrasts(&rows(10.9)).is_empty());
        assert!(contrasts(&rows(1.0)).is_empty());
        assert!(contrasts(&[]).is_empty());
        let mut other = rows(20.0);
        assert_eq!(contrasts(&other).len(), 1);
        other[1].of = "another drive".to_owned();
        assert!(contrasts(&other).is_empty());
        let none = [row("a", &[("", 0.0, 1.0)]), row("b", &[("", 1.0, 1.0)])];
        assert!(contrasts(&none).is_empty());
    }
}

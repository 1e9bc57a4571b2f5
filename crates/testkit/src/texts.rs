//! Texts of schedulers that cover the table of policies.

use headtime_sched::{PolicyInfo, Value, policies};

/// Texts of a policy at its defaults: alone and, if the policy wraps an elevator, around every elevator.
pub fn plain_texts(info: &PolicyInfo) -> Vec<String> {
    let alone = numbered(info, |number| number.example);
    let elevators = policies().filter(|inner| info.inner.is_some() && !inner.waits);
    let around = elevators.map(|inner| format!("{alone}({})", numbered(inner, |n| n.example)));
    around.chain([alone.clone()]).collect()
}

/// Texts of a policy at the ends of its ranges. They have its number lowest and highest, and every word and both ends
/// of every option alone. Two more texts have all options at their lowest and at their highest.
pub fn extreme_texts(info: &PolicyInfo) -> Vec<String> {
    let name = numbered(info, |number| number.example);
    let all = |end: fn((Value, Value)) -> Value| {
        let options = info.options.iter();
        let options = options.map(|option| format!(":{}={}", option.key, end(option.range)));
        name.clone() + &options.collect::<String>()
    };
    let numbers = info.number.map(|number| [number.min, number.max]);
    let numbers = numbers.into_iter().flatten();
    let mut texts: Vec<String> = numbers.map(|n| format!("{}{n}", info.name)).collect();
    for option in info.options {
        let ends = [option.range.0, option.range.1].map(|end| end.to_string());
        let words = option.words.iter().map(|word| word.to_string());
        let values = ends.into_iter().chain(words);
        texts.extend(values.map(|value| format!("{name}:{}={value}", option.key)));
    }
    texts.extend([all(|(low, _)| low), all(|(_, high)| high)]);
    texts.sort();
    texts.dedup();
    texts
}

/// Name of the policy, followed by its number, if it has one.
fn numbered(info: &PolicyInfo, number: fn(headtime_sched::NumberInfo) -> u64) -> String {
    let number = info.number.map(|info| number(info).to_string());
    info.name.to_owned() + &number.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::Spec;

    fn info(name: &str) -> &'static PolicyInfo {
        let mut all = policies();
        all.find(|info| info.name == name).expect("a policy")
    }

    #[test]
    fn texts_of_every_policy_are_read_as_that_policy() {
        for info in policies() {
            for text in plain_texts(info).into_iter().chain(extreme_texts(info)) {
                let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(spec.info(), info, "{text}");
            }
        }
    }

    #[test]
    fn ends_of_ranges_numbers_words_and_inner_elevators_are_covered() {
        let extremes = extreme_texts(info("sptf-sw"));
        assert_eq!(extremes, ["sptf-sw0", "sptf-sw10000", "sptf-sw60"]);
        let extremes = extreme_texts(info("stream"));
        let wanted = ["stream:hz=1000", "stream:lost=1", "stream:burst=false"];
        assert!(
            wanted
                .iter()
                .all(|text| extremes.iter().any(|other| other == text)),
            "{extremes:?}"
        );
        let plain = plain_texts(info("stream"));
        let wanted = ["stream", "stream(noop)", "stream(sptf-sw60)"];
        assert!(
            wanted
                .iter()
                .all(|text| plain.iter().any(|other| other == text)),
            "{plain:?}"
        );
    }
}

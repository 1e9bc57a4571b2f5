//! Changes to texts that leave most of them in order, so that fuzzing gets past the grammar.

use crate::parts::Draw;
use headtime_units::Nanos;

/// Numbers at the ends of ranges.
const NUMBERS: [&str; 28] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "255",
    "256",
    "65535",
    "65536",
    "1048576",
    "16777215",
    "16777216",
    "2147483648",
    "4000000000",
    "4294967295",
    "4294967296",
    "1099511627776",
    "281474976710656",
    "9223372036854775807",
    "18446744073709551615",
    "0.000001",
    "0.5",
    "0.999999999",
    "1.0",
    "3999.9",
    "1e300",
    "-1",
];

/// Times at the ends of ranges, and just beyond.
const TIMES: [&str; 14] = [
    "0ns",
    "1ns",
    "999999us",
    "1ms",
    "100ms",
    "4s",
    "4.000000001s",
    "3600s",
    "1d",
    "86400.000000001s",
    "3650d",
    "315360000.000000001s",
    "213503d",
    "99999999999999d",
];

/// Changes the text in `data[..size]` in one of several ways, or as `otherwise` does, which is also
/// for what is no text; returns its new length, at most `max_size`.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    otherwise: fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut draw = Draw::new(&seed.to_le_bytes());
    let changed = match (std::str::from_utf8(&data[..size]), draw.below(6)) {
        (Ok(text), 0) => number(text, &mut draw),
        (Ok(text), 3) => time(text, &mut draw),
        (Ok(text), 1) => line(text, &mut draw),
        (Ok(text), 2) => word(text, &mut draw),
        _ => None,
    };
    match changed.filter(|text| text.len() <= max_size) {
        Some(text) => {
            data[..text.len()].copy_from_slice(text.as_bytes());
            text.len()
        }
        None => otherwise(data, size, max_size),
    }
}

/// Puts another number in the place of one.
fn number(text: &str, draw: &mut Draw) -> Option<String> {
    let is_part = |sign: char| sign.is_ascii_digit() || sign == '.';
    let (from, to) = pick(text, is_part, draw)?;
    let old = &text[from..to];
    let new = match (draw.below(4), old.parse::<u64>()) {
        (0, Ok(old)) => old.wrapping_add(1).to_string(),
        (1, Ok(old)) => old.wrapping_sub(1).to_string(),
        (2, Ok(old)) => (old / 2).wrapping_add(draw.below(old | 1)).to_string(),
        _ => NUMBERS[draw.below(NUMBERS.len() as u64) as usize].to_owned(),
    };
    Some([&text[..from], &new, &text[to..]].concat())
}

/// Puts another time in the place of one.
fn time(text: &str, draw: &mut Draw) -> Option<String> {
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '.';
    let is_time = |word: &str| word.parse::<Nanos>().is_ok();
    let (from, to) = pick_such(text, is_part, is_time, draw)?;
    let new = TIMES[draw.below(TIMES.len() as u64) as usize];
    Some([&text[..from], new, &text[to..]].concat())
}

/// Puts a word of the text, or a string in quotes, in the place of another.
fn word(text: &str, draw: &mut Draw) -> Option<String> {
    let in_quotes = draw.below(2) == 0;
    let is_part = |sign: char| {
        if in_quotes {
            !matches!(sign, '"' | '\n')
        } else {
            sign.is_alphanumeric() || matches!(sign, '_' | '-' | '.')
        }
    };
    let (from, to) = pick(text, is_part, draw)?;
    let (new_from, new_to) = pick(text, is_part, draw)?;
    Some([&text[..from], &text[new_from..new_to], &text[to..]].concat())
}

/// Removes, repeats or moves a line.
fn line(text: &str, draw: &mut Draw) -> Option<String> {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = draw.below((lines.len() as u64).max(1)) as usize;
    let to = draw.below((lines.len() as u64).max(1)) as usize;
    let line = *lines.get(at)?;
    match draw.below(3) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(to, line),
        _ => lines.swap(at, to),
    }
    Some(lines.concat())
}

/// A stretch of such signs, as long as it goes.
fn pick(text: &str, is_part: impl Fn(char) -> bool, draw: &mut Draw) -> Option<(usize, usize)> {
    pick_such(text, is_part, |_| true, draw)
}

/// One that is also such a word.
fn pick_such(
    text: &str,
    is_part: impl Fn(char) -> bool,
    is_such: impl Fn(&str) -> bool,
    draw: &mut Draw,
) -> Option<(usize, usize)> {
    let mut stretches = Vec::new();
    let mut begin = None;
    for (at, sign) in text.char_indices().chain([(text.len(), '\0')]) {
        match (begin, at < text.len() && is_part(sign)) {
            (None, true) => begin = Some(at),
            (Some(from), false) => {
                if is_such(&text[from..at]) {
                    stretches.push((from, at));
                }
                begin = None;
            }
            _ => {}
        }
    }
    let count = u64::try_from(stretches.len())
        .ok()
        .filter(|count| *count > 0)?;
    Some(stretches[draw.below(count) as usize])
}

//! The requests of a job: operations, sizes, addresses.

use super::values::Values;
use headtime_config::Error;
use headtime_units::Bytes;
use headtime_workload::{Places, SizeDistribution};

/// The pattern of a job.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub is_random: bool,
    pub read_share: f64,
    /// The share of requests at the end of the last one.
    pub sequential_share: f64,
    /// Of reads and of writes.
    pub sizes: [SizeDistribution; 2],
    pub size_step: u64,
    pub align: u64,
    pub places: Places,
    /// If only a first part of the range is used, how long that is.
    pub reach: Option<u64>,
    /// A difference between the simulated pattern and fio's.
    pub note: Option<String>,
}

impl Pattern {
    /// Which of reads and writes there are.
    pub fn used(&self) -> [bool; 2] {
        [self.read_share > 0.0, self.read_share < 1.0]
    }

    /// The mean and the least size of a request, in bytes.
    pub fn bytes(&self) -> (f64, u64) {
        let mean = |sizes: &SizeDistribution| match sizes {
            SizeDistribution::Table(entries) => {
                let weight = |weight: u32| f64::from(weight);
                let sum: f64 = entries.iter().map(|(_, of)| weight(*of)).sum();
                let bytes = entries.iter().map(|(size, of)| size.0 as f64 * weight(*of));
                bytes.sum::<f64>() / sum
            }
            other => bounds(other).iter().sum::<u64>() as f64 / 2.0,
        };
        let [reads, writes] = &self.sizes;
        let mean = self.read_share * mean(reads) + (1.0 - self.read_share) * mean(writes);
        let used = self.sizes.iter().zip(self.used()).filter(|(_, used)| *used);
        let least = used.map(|(sizes, _)| bounds(sizes)[0]).min();
        (mean, least.unwrap_or_default())
    }

    pub fn read(values: Values<'_>) -> Result<Pattern, Error> {
        let (kind, every) = kind(values)?;
        let is_random = kind.starts_with("rand");
        let read_share = match kind {
            "read" | "randread" => 1.0,
            "write" | "randwrite" => 0.0,
            _ => read_share(values)?,
        };
        let used = [read_share > 0.0, read_share < 1.0];
        let (sequential_share, note) = sequential_share(values, is_random, every, used)?;
        let sizes = sizes(values)?;
        let (sizes, size_step) = on_steps(sizes, used, values)?;
        let least = sizes.iter().zip(used).filter(|(_, used)| *used);
        let usual = least.map(|(sizes, _)| bounds(sizes)[0]).fold(0, gcd);
        let align = values.both("ba", |text| match values.bytes_of(text)? {
            0 => Err("allowed is more than nothing".to_owned()),
            bytes => Ok(bytes),
        })?;
        let align = same(values, "ba", align, used)?.unwrap_or(usual);
        let (places, reach) = match is_random {
            true => places(values)?,
            false => (Places::Uniform, None),
        };
        Ok(Pattern {
            is_random,
            read_share,
            sequential_share,
            sizes,
            size_step,
            align,
            places,
            reach,
            note,
        })
    }
}

/// The greatest common divisor; of 0 and another number, that one.
fn gcd(one: u64, other: u64) -> u64 {
    match other {
        0 => one,
        _ => gcd(other, one % other),
    }
}

/// The least and the largest size.
fn bounds(sizes: &SizeDistribution) -> [u64; 2] {
    match sizes {
        SizeDistribution::Constant(size) | SizeDistribution::Exponential(size) => [size.0; 2],
        SizeDistribution::Uniform(from, to) => [from.0, to.0],
        SizeDistribution::Table(entries) => {
            let sizes = entries.iter().map(|(size, _)| size.0);
            let least = sizes.clone().min().unwrap_or_default();
            [least, sizes.max().unwrap_or_default()]
        }
    }
}

/// The word of `rw` and its number.
fn kind<'v>(values: Values<'v>) -> Result<(&'v str, Option<&'v str>), Error> {
    let text = values.text("rw").unwrap_or("read");
    let (kind, every) = match text.split_once(':') {
        Some((kind, every)) => (kind, Some(every)),
        None => (text, None),
    };
    let allowed = "allowed are read, write, rw, randread, randwrite and randrw; nothing is trimmed";
    match kind {
        "read" | "write" | "rw" | "readwrite" | "randread" | "randwrite" | "randrw" => {
            Ok((kind, every))
        }
        _ => Err(values.error("rw", allowed)),
    }
}

fn read_share(values: Values<'_>) -> Result<f64, Error> {
    let mut reads = 50;
    for key in values.in_order(&["rwmixread", "rwmixwrite"]) {
        let percent = values.whole(key, 0, 100)?.unwrap_or(50);
        reads = match key {
            "rwmixread" => percent,
            _ => 100 - percent,
        };
    }
    Ok(reads as f64 / 100.0)
}

/// The share of a random job that goes on where the last request ended.
fn sequential_share(
    values: Values<'_>,
    is_random: bool,
    every: Option<&str>,
    used: [bool; 2],
) -> Result<(f64, Option<String>), Error> {
    let percent = values.both("percentage_random", |text| {
        let percent = text.parse::<u64>().ok().filter(|percent| *percent <= 100);
        percent.ok_or_else(|| "allowed is a whole number from 0 to 100".to_owned())
    })?;
    let percent = same(values, "percentage_random", percent, used)?;
    let every = match every.map(|text| values.bytes_of(text)) {
        None => None,
        Some(Ok(every @ 0..=1_000_000)) => Some(every),
        Some(_) => return Err(values.error("rw", "behind : stands a whole number up to 1000000")),
    };
    match (is_random, percent, every.unwrap_or(0)) {
        (false, _, 0) => Ok((1.0, None)),
        (false, ..) => {
            let problem =
                "sequential requests with holes are not simulated; leave out what stands behind :";
            Err(values.error("rw", problem))
        }
        (true, percent, 0 | 1) => Ok((1.0 - percent.unwrap_or(100) as f64 / 100.0, None)),
        (true, Some(_), _) => Err(values.error("rw", "not together with percentage_random")),
        (true, None, every) => {
            let note = format!(
                "rw: a new place comes every {every} requests in the mean; fio counts to {every} each time"
            );
            Ok((1.0 - 1.0 / every as f64, Some(note)))
        }
    }
}

/// The common value of reads and writes, or of the kind in use.
fn same<T: PartialEq>(
    values: Values<'_>,
    key: &str,
    [reads, writes]: [Option<T>; 2],
    used: [bool; 2],
) -> Result<Option<T>, Error> {
    match used {
        [true, false] => Ok(reads),
        [false, _] => Ok(writes),
        _ if reads == writes => Ok(reads),
        _ => {
            let problem = "reads and writes of a job have to have the same here; make two jobs";
            Err(values.error(key, problem))
        }
    }
}

/// The sizes of reads and of writes.
fn sizes(values: Values<'_>) -> Result<[SizeDistribution; 2], Error> {
    let mut sizes = [4096, 4096].map(|bytes| SizeDistribution::Constant(Bytes(bytes)));
    for key in values.in_order(&["bs", "bsrange", "bssplit"]) {
        let given = values.both(key, |text| match key {
            "bs" => values
                .bytes_of(text)
                .map(|bytes| SizeDistribution::Constant(Bytes(bytes))),
            "bsrange" => range(values, text),
            _ => split(values, text),
        })?;
        for (size, given) in sizes.iter_mut().zip(given) {
            *size = given.unwrap_or_else(|| size.clone());
            if bounds(size)[0] == 0 {
                return Err(values.error(key, "allowed is a size of more than nothing"));
            }
        }
    }
    Ok(sizes)
}

/// Two sizes, and the multiples of the first between them.
fn range(values: Values<'_>, text: &str) -> Result<SizeDistribution, String> {
    let ends = text.split_once(['-', ':']);
    let (one, other) = ends.ok_or("allowed are two sizes, as in 4k-64k")?;
    let (one, other) = (values.bytes_of(one)?, values.bytes_of(other)?);
    let (least, most) = (one.min(other), one.max(other));
    match most.checked_rem(least) {
        Some(0) if least == most => Ok(SizeDistribution::Constant(Bytes(least))),
        Some(0) => Ok(SizeDistribution::Uniform(Bytes(least), Bytes(most))),
        _ => {
            Err("the larger size has to be a multiple of the smaller; bssplit takes any".to_owned())
        }
    }
}

/// A number of percent; `None` if it is left out.
fn percent(text: Option<&str>) -> Result<Option<u32>, String> {
    match text.map(str::trim) {
        None | Some("") => Ok(None),
        Some(text) => match text.parse::<u32>() {
            Ok(percent @ 0..=100) => Ok(Some(percent)),
            _ => Err(format!("`{text}` is no whole number of percent")),
        },
    }
}

/// Fills percentages up to 100. Entries without a number share the rest equally, and the last entry gets the remainder.
fn filled(percents: &[Option<u32>]) -> Result<Vec<u32>, String> {
    let sum: u32 = percents.iter().flatten().sum();
    let rest = 100_u32
        .checked_sub(sum)
        .ok_or("the percentages are more than 100 together")?;
    let left_out = percents.iter().filter(|percent| percent.is_none()).count() as u32;
    let each = rest.checked_div(left_out).unwrap_or(0);
    let mut filled: Vec<u32> = percents
        .iter()
        .map(|percent| percent.unwrap_or(each))
        .collect();
    if let Some(last) = filled.last_mut() {
        *last += rest - each * left_out;
    }
    Ok(filled)
}

/// The most entries of a table.
const ENTRIES_MAX: usize = 256;

fn split(values: Values<'_>, text: &str) -> Result<SizeDistribution, String> {
    let entries: Vec<&str> = text.split(':').collect();
    if entries.len() > ENTRIES_MAX {
        return Err(format!("more than {ENTRIES_MAX} sizes"));
    }
    let (mut sizes, mut percents) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut parts = entry.splitn(2, '/');
        sizes.push(values.bytes_of(parts.next().unwrap_or_default())?);
        percents.push(percent(parts.next())?);
    }
    let weights = filled(&percents)?;
    let entries = sizes.into_iter().map(Bytes).zip(weights);
    Ok(SizeDistribution::Table(
        entries.filter(|(_, weight)| *weight > 0).collect(),
    ))
}

/// Gives both sizes one step. A constant beside the step becomes a table with one entry.
fn on_steps(
    mut sizes: [SizeDistribution; 2],
    used: [bool; 2],
    values: Values<'_>,
) -> Result<([SizeDistribution; 2], u64), Error> {
    let step = |sizes: &SizeDistribution| match sizes {
        SizeDistribution::Uniform(from, _) => Some(from.0),
        _ => None,
    };
    let [reads, writes] = [0, 1].map(|of| used[of].then(|| step(&sizes[of])).flatten());
    if reads.is_some() && writes.is_some() && reads != writes {
        let problem =
            "reads and writes of a job have to have the same lower end here; make two jobs";
        return Err(values.error("bsrange", problem));
    }
    let constants = sizes
        .iter()
        .zip(used)
        .filter_map(|(sizes, used)| match sizes {
            SizeDistribution::Constant(size) if used => Some(size.0),
            _ => None,
        });
    let step = reads.or(writes).unwrap_or_else(|| constants.fold(0, gcd));
    for sizes in &mut sizes {
        if let SizeDistribution::Constant(size) = *sizes
            && step > 0
            && !size.0.is_multiple_of(step)
        {
            *sizes = SizeDistribution::Table([(size, 1)].into());
        }
    }
    Ok((sizes, step))
}

/// How addresses are spread, and over how much of the range.
fn places(values: Values<'_>) -> Result<(Places, Option<u64>), Error> {
    let Some(text) = values.text("random_distribution") else {
        return Ok((Places::Uniform, None));
    };
    let wrong = |problem: &str| Err(values.error("random_distribution", problem));
    let (kind, inside) = text.split_once([':', '=']).unwrap_or((text, ""));
    let number = || match inside.parse::<f64>() {
        Ok(number) => Ok(number),
        Err(_) => {
            let problem =
                "allowed is one number behind :, as in zipf:1.2; a centre is not simulated";
            Err(values.error("random_distribution", problem))
        }
    };
    let places = match kind {
        "random" => Places::Uniform,
        "zipf" => Places::Zipf(number()?),
        "pareto" => Places::Pareto(number()?),
        "zoned" | "zoned_abs" if inside.contains(',') => {
            return wrong("reads and writes of a job have to have the same here; make two jobs");
        }
        "zoned" | "zoned_abs" => {
            let zones = zones(values, inside, kind == "zoned");
            return zones.or_else(|problem| wrong(&problem));
        }
        _ => return wrong("allowed are random, zipf:N, pareto:N, zoned:.. and zoned_abs:.."),
    };
    // The distribution itself checks its number.
    match places.to_string().parse() {
        Ok(places) => Ok((places, None)),
        Err(error) => wrong(&error.to_string()),
    }
}

/// Zones with a percentage of requests, and a percentage of the range or a number of bytes.
fn zones(values: Values<'_>, text: &str, of_range: bool) -> Result<(Places, Option<u64>), String> {
    let (mut shares, mut lens) = (Vec::new(), Vec::new());
    for zone in text.split(':').take(ENTRIES_MAX + 1) {
        let (share, len) = zone
            .split_once('/')
            .ok_or("a zone is written as in 60/10")?;
        shares.push(percent(Some(share))?);
        lens.push(match of_range {
            true => u64::from(percent(Some(len))?.unwrap_or(0)),
            false => values.bytes_of(len)?,
        });
    }
    if shares.len() > ENTRIES_MAX {
        return Err(format!("more than {ENTRIES_MAX} zones"));
    }
    let whole = lens
        .iter()
        .try_fold(0_u64, |sum, len| sum.checked_add(*len));
    let whole = whole.ok_or("the zones are too large")?;
    if lens.contains(&0) || (of_range && whole > 100) {
        return Err("no zone is empty, and all are 100 % of the range at most".to_owned());
    }
    // The rest of the range is a zone that nothing goes to.
    let shares = filled(&shares)?;
    let mut zones: Vec<(u32, u64)> = shares.into_iter().zip(lens).collect();
    if of_range && whole < 100 {
        zones.push((0, 100 - whole));
    }
    let unit = match of_range {
        true => 1,
        false => zones.iter().fold(0, |unit, (_, len)| gcd(unit, *len)),
    };
    let zones = zones.into_iter().map(|(share, len)| {
        let len = u32::try_from(len / unit);
        len.map(|len| (share, len))
            .map_err(|_| "the zones have no common measure; round them")
    });
    let zones = zones.collect::<Result<_, _>>()?;
    Ok((Places::Zoned(zones), (!of_range).then_some(whole)))
}

//! Axes, which map values to pixels and choose round ticks.

/// Maps a range of values to a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    log: bool,
}

impl Axis {
    /// Creates a linear axis from `low` at pixel `start` to `high` at pixel `end`.
    pub fn linear(low: f64, high: f64, start: f64, end: f64) -> Axis {
        Axis {
            low,
            high: if high > low { high } else { low + 1.0 },
            start,
            end,
            log: false,
        }
    }

    /// Creates a logarithmic axis. `low` must be above zero.
    pub fn log(low: f64, high: f64, start: f64, end: f64) -> Axis {
        assert!(low > 0.0, "a logarithmic axis begins above zero");
        Axis {
            low,
            high: if high > low { high } else { low * 10.0 },
            start,
            end,
            log: true,
        }
    }

    /// Returns the pixel of a value. Values outside the range are moved to its ends.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = if self.log {
            libm::log10(value / self.low) / libm::log10(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.start + part * (self.end - self.start)
    }

    /// Returns about `count` round values within the range of a linear axis.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let step = round_step((self.high - self.low) / count as f64);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step * (1.0 + 1e-12)).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }

    /// Returns round values within the range of a logarithmic axis, at least `apart` pixels apart. The values are 1, 2, 5, 10, .., or
    /// 1, 3, 10, .., or powers of ten.
    pub fn log_ticks(&self, apart: f64) -> Vec<f64> {
        let (low, high) = (self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9));
        let first = libm::floor(libm::log10(self.low)) as i32;
        let last = libm::ceil(libm::log10(self.high)) as i32;
        let decade = (self.end - self.start).abs() / libm::log10(self.high / self.low);
        // Factors within a decade, and the smallest ratio of neighbours.
        let fine: [(&[f64], f64); 2] = [(&[1.0, 2.0, 5.0], 2.0), (&[1.0, 3.0], 3.0)];
        let fits = |ratio: f64| decade * libm::log10(ratio) >= apart;
        let factors = fine
            .iter()
            .find(|(_, ratio)| fits(*ratio))
            .map_or(&[1.0][..], |(factors, _)| factors);
        (first..=last)
            .flat_map(|power| factors.iter().map(move |factor| factor * ten_to(power)))
            .filter(|value| (low..=high).contains(value))
            .collect()
    }
}

/// Returns a power of ten, exact if a float can represent it.
fn ten_to(power: i32) -> f64 {
    let size: f64 = (0..power.unsigned_abs()).fold(1.0, |size, _| size * 10.0);
    if power < 0 { 1.0 / size } else { size }
}

/// Returns the smallest of 1, 2, 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = ten_to(libm::floor(libm::log10(step)) as i32);
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power >= step * (1.0 - 1e-12));
    factor.unwrap_or(10.0) * power
}

/// Formats a tick's label with no more digits than needed.
pub fn label(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{value:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::linear(0.0, 1.7, 0.0, 100.0);
        let labels: Vec<String> = axis.ticks(8).into_iter().map(label).collect();
        assert_eq!(labels, ["0", "0.5", "1", "1.5"]);
        let axis = Axis::linear(0.0, 500.1, 100.0, 0.0);
        assert_eq!(axis.ticks(5).len(), 3);
        assert_eq!(axis.at(0.0), 100.0);
        assert_eq!(axis.at(1e9), 0.0);
        // An axis with an empty range still works.
        assert_eq!(Axis::linear(3.0, 3.0, 0.0, 10.0).at(3.0), 0.0);
    }

    #[test]
    fn log_ticks_thin_out() {
        let axis = Axis::log(0.5, 100.0, 0.0, 100.0);
        let labels =
            |apart| -> Vec<String> { axis.log_ticks(apart).into_iter().map(label).collect() };
        // 2.3 decades in 100 pixels: factors of 2 are 13 pixels apart, factors of 3 are 20.
        assert_eq!(
            labels(10.0),
            ["0.5", "1", "2", "5", "10", "20", "50", "100"]
        );
        assert_eq!(labels(15.0), ["1", "3", "10", "30", "100"]);
        assert_eq!(labels(30.0), ["1", "10", "100"]);
        assert!((axis.at(0.5 * 200_f64.sqrt()) - 50.0).abs() < 1e-9);
    }
}

//! Means of repeats and their confidence intervals.

/// Rounds to `places` decimal places, since a result is no finer than its unit of time.
pub fn round(value: f64, places: i32) -> f64 {
    // Powers of ten up to 22 are exact.
    let scale = (0..places).fold(1.0, |scale, _| scale * 10.0);
    let rounded = (value * scale).round() / scale;
    // No negative zero in a report.
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// The mean of some values, and half the width of its 95 % confidence interval (Student's t); zero
/// width for fewer than two.
pub fn mean_and_ci95(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    (mean, student_t(values.len() - 1) * deviation / count.sqrt())
}

/// The 97.5 % quantile of Student's t distribution. Up to 30 degrees of freedom the values are from tables. Beyond, they are the first
/// terms of the expansion at the normal quantile (Abramowitz and Stegun 26.7.5).
fn student_t(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL: f64 = 1.959_964;
    match TABLE.get(freedom.wrapping_sub(1)) {
        Some(value) => *value,
        None => {
            let (x, n) = (NORMAL, freedom as f64);
            let (cube, fifth) = (x * x * x, x * x * x * x * x);
            x + (cube + x) / (4.0 * n) + (5.0 * fifth + 16.0 * cube + 3.0 * x) / (96.0 * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_of_a_textbook_sample() {
        let (mean, half) = mean_and_ci95(&[10.0, 12.0, 14.0]);
        assert_eq!(mean, 12.0);
        // s = 2, t(2) = 4.303: 4.303 * 2 / sqrt(3).
        assert!((half - 4.968_7).abs() < 1e-3, "{half}");
        assert_eq!(mean_and_ci95(&[3.0]), (3.0, 0.0));
        assert!((student_t(60) - 2.000).abs() < 2e-3);
        assert!((student_t(31) - 2.040).abs() < 2e-3);
    }

    #[test]
    fn statistics_are_rounded_in_one_way() {
        assert_eq!(round(1.234_567_89, 6), 1.234_568);
        assert!(round(-1e-12, 6).is_sign_positive());
    }
}

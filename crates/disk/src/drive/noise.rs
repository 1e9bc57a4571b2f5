//! Random variation of a unit, from a seed.

use crate::profile::NoiseSpec;
use headtime_units::{Lba, Nanos, Time};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// Draws the deviations of one unit with a PCG XSH RR 64/32 generator (O'Neill 2014). The
/// generator's stream defines the meaning of a seed.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    spec: NoiseSpec,
    seed: u64,
    random: Pcg32,
}

impl Noise {
    /// The generator of a unit.
    pub fn new(spec: &NoiseSpec, seed: u64) -> Noise {
        Noise {
            spec: *spec,
            seed,
            random: Pcg32::seed_from_u64(seed),
        }
    }

    /// 0 to less than 1.
    pub fn uniform(&mut self) -> f64 {
        f64::from(self.random.next_u32()) / 4_294_967_296.0
    }

    /// A standard normal deviate, cut at three deviations.
    fn normal(&mut self) -> f64 {
        loop {
            // Box and Muller; the logarithm's argument is never zero.
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
            let deviate = radius * libm::cos(core::f64::consts::TAU * self.uniform());
            if libm::fabs(deviate) <= 3.0 {
                return deviate;
            }
        }
    }

    /// Duration of this unit's turn; the nominal duration is `turn`.
    pub fn turn(&mut self, turn: Nanos) -> Nanos {
        if self.spec.speed_ppm == 0 {
            return turn;
        }
        let part = (2.0 * self.uniform() - 1.0) * f64::from(self.spec.speed_ppm) / 1e6;
        Nanos::from_nanos(libm::round(turn.as_nanos() as f64 / (1.0 + part)) as u64)
    }

    /// Returns true if seeks vary.
    pub fn seeks_vary(&self) -> bool {
        !self.spec.seek_sd.is_zero() || self.spec.seek_sd_relative > 0.0
    }

    /// Deviation of a seek of `seek`, in nanoseconds. Never below `-seek`.
    pub fn seek(&mut self, seek: Nanos) -> i64 {
        if seek.is_zero() || !self.seeks_vary() {
            return 0;
        }
        let nanos = seek.as_nanos() as f64;
        let sd = (self.spec.seek_sd.as_nanos() as f64).max(nanos * self.spec.seek_sd_relative);
        libm::round((sd * self.normal()).max(-nanos)) as i64
    }

    /// Largest deviation of a seek.
    pub fn seek_at_most(&self, seek: Nanos) -> Nanos {
        let relative = Nanos::from_millis_f64(seek.as_millis_f64() * self.spec.seek_sd_relative);
        self.spec.seek_sd.max(relative) * 3
    }

    /// Delay of a read of the medium at `lba` that does not succeed at once: whole turns, or a long wait. The arm
    /// leaves at `now`.
    ///
    /// Seed, address and minute decide. Two runs of the same requests, such as with and without a scan, therefore have
    /// the same late reads.
    pub fn recovery(&self, turn: Nanos, lba: Lba, now: Time) -> Nanos {
        let mut late = Nanos::ZERO;
        if self.spec.retried_reads <= 0.0 && self.spec.long_waits <= 0.0 {
            return late;
        }
        let minute = now.as_nanos() / Nanos::from_secs(60).as_nanos();
        let mut random = Pcg32::seed_from_u64(self.seed.rotate_left(32) ^ minute << 40 ^ lba.get());
        let mut uniform = || f64::from(random.next_u32()) / 4_294_967_296.0;
        if uniform() < self.spec.retried_reads {
            late += turn;
            while uniform() < 0.25 {
                late += turn;
            }
        }
        if uniform() < self.spec.long_waits {
            late += Nanos::from_millis_f64(30.0 + 70.0 * uniform());
        }
        late
    }

    /// A command's overhead: `overhead` with a random deviation, cut at zero. If `overhead` is zero, the deviation can
    /// only add time.
    pub fn overhead(&mut self, overhead: Nanos) -> Nanos {
        if self.spec.overhead_sd.is_zero() {
            return overhead;
        }
        let sd = self.spec.overhead_sd.as_nanos() as f64;
        let nanos = overhead.as_nanos() as f64 + sd * self.normal();
        Nanos::from_nanos(libm::round(nanos.max(0.0)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_have_the_stated_spread() {
        let spec = NoiseSpec {
            seek_sd: Nanos::from_micros(20),
            seek_sd_relative: 0.01,
            overhead_sd: Nanos::from_micros(30),
            speed_ppm: 1000,
            ..NoiseSpec::default()
        };
        let mut noise = Noise::new(&spec, 7);
        let seek = Nanos::from_millis(8);
        let draws: Vec<f64> = (0..20_000).map(|_| noise.seek(seek) as f64).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>();
        let sd = libm::sqrt(variance / draws.len() as f64);
        // 1 % of 8 ms; cutting at three deviations takes 1.4 % off.
        assert!((sd - 79_000.0).abs() < 1_500.0, "{sd}");
        assert!(mean.abs() < 2_000.0, "{mean}");
        let turn = Nanos::from_nanos(8_333_333);
        for _ in 0..100 {
            let unit = noise.turn(turn).as_nanos() as f64 / 8_333_333.0;
            assert!((unit - 1.0).abs() < 0.001_01);
        }
    }

    #[test]
    fn without_noise_nothing_varies_or_is_drawn() {
        let mut noise = Noise::new(&NoiseSpec::default(), 7);
        assert_eq!(noise.seek(Nanos::from_millis(8)), 0);
        assert_eq!(noise.overhead(Nanos::from_micros(3)), Nanos::from_micros(3));
        assert_eq!(noise.turn(Nanos::from_millis(6)), Nanos::from_millis(6));
    }

    #[test]
    fn late_reads_have_their_share_and_are_the_same_in_each_run() {
        let spec = NoiseSpec {
            retried_reads: 0.015,
            long_waits: 0.005,
            ..NoiseSpec::default()
        };
        let turn = Nanos::from_millis(8);
        let read = |seed, lba, secs| {
            Noise::new(&spec, seed).recovery(
                turn,
                Lba::new(lba),
                Time::ZERO + Nanos::from_secs(secs),
            )
        };
        // Reads one behind the other.
        let all: Vec<Nanos> = (0..100_000)
            .map(|nth| read(7, 8 * nth, nth / 150))
            .collect();
        let retried = all.iter().filter(|late| **late >= turn).count();
        assert!((1_850..2_150).contains(&retried), "{retried} of 2,000");
        let long = all
            .iter()
            .filter(|late| **late >= Nanos::from_millis(30))
            .count();
        assert!((430..600).contains(&long), "{long} of 500");
        let late: Vec<u64> = (0..10_000)
            .filter(|lba| !read(7, *lba, 0).is_zero())
            .collect();
        let same = |seed, secs| {
            late.iter()
                .filter(|lba| !read(seed, **lba, secs).is_zero())
                .count()
        };
        assert_eq!(same(7, 59), late.len());
        assert!(
            same(7, 61) < 20 && same(8, 0) < 20,
            "another minute, another unit"
        );
    }

    #[test]
    fn the_generator_is_pinned() {
        let spec = NoiseSpec {
            seek_sd: Nanos::from_micros(20),
            ..NoiseSpec::default()
        };
        let mut noise = Noise::new(&spec, 1);
        let draws = [0; 4].map(|_: i32| noise.seek(Nanos::from_millis(5)));
        assert_eq!(draws, [-13_406, 32_183, 28_572, 32_004]);
    }
}

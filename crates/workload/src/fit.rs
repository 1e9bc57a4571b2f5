//! Maps the addresses of a trace onto a drive.

use crate::trace::{TRACE_SECTOR, names};
use headtime_units::{Extent, Lba, Sectors};
use std::fmt;

/// Treatment of a request that reaches past the end of the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fit {
    /// Report an error.
    #[default]
    Refuse,
    /// Take the address modulo the capacity. If the request would then cross the end of the drive, the
    /// request moves back until it fits.
    Wrap,
}

names!(Fit, "way to fit addresses", { Refuse => "error", Wrap => "wrap" });

/// Converts sectors of 512 bytes into sectors of a drive, at addresses below the drive's end.
///
/// On a drive with smaller sectors, a request has more sectors for the same bytes. A drive with larger sectors gets requests widened to
/// whole sectors. Reading before writing, as a real drive does, is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitter {
    capacity: Sectors,
    /// Bytes in a sector of the drive.
    sector_bytes: u32,
    fit: Fit,
}

/// An extent on the drive, and the changes that were needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fitted {
    /// The sectors of the drive.
    pub extent: Extent,
    /// True if the request began or ended inside a sector, and was widened to whole sectors.
    pub widened: bool,
    /// True if the request reached past the end of the drive, and was moved.
    pub moved: bool,
}

impl Fitter {
    /// Creates a fitter for a drive of `capacity` sectors of `sector_bytes` bytes.
    ///
    /// # Panics
    ///
    /// If the capacity is zero, or if the sector is neither a multiple nor a part of 512 bytes.
    pub fn new(capacity: Sectors, sector_bytes: u32, fit: Fit) -> Fitter {
        assert!(capacity > Sectors::ZERO, "a drive has sectors");
        assert!(
            sector_bytes > 0
                && (sector_bytes.is_multiple_of(TRACE_SECTOR)
                    || TRACE_SECTOR.is_multiple_of(sector_bytes)),
            "sectors of {sector_bytes} bytes: a multiple or a part of 512 is wanted"
        );
        Fitter {
            capacity,
            sector_bytes,
            fit,
        }
    }

    /// Number of sectors of the drive.
    pub fn capacity(&self) -> Sectors {
        self.capacity
    }

    /// Bytes in a sector of the drive.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Converts sectors of 512 bytes into sectors of the drive.
    ///
    /// With [`Fit::Wrap`], a request that is longer than the whole drive is cut to the drive's length.
    ///
    /// # Errors
    ///
    /// With [`Fit::Refuse`], the extent in sectors of the drive, if the extent does not lie on the
    /// drive.
    pub fn fit(&self, extent: Extent) -> Result<Fitted, Extent> {
        let (start, len) = (extent.start.get(), extent.len.get());
        // Trace sectors in a drive sector, and drive sectors in a trace sector. Either number is 1.
        let ratio = u64::from(self.sector_bytes / TRACE_SECTOR).max(1);
        let parts = u64::from(TRACE_SECTOR / self.sector_bytes).max(1);
        let first = (start / ratio).saturating_mul(parts);
        let sectors = (start % ratio + len).div_ceil(ratio).saturating_mul(parts);
        let widened = sectors.saturating_mul(ratio) != len.saturating_mul(parts);
        let capacity = self.capacity.get();
        if first < capacity && sectors <= capacity - first {
            return Ok(Fitted {
                extent: Extent::at(first, sectors),
                widened,
                moved: false,
            });
        }
        match self.fit {
            Fit::Refuse => Err(Extent::at(first, sectors)),
            Fit::Wrap => {
                let len = Sectors::new(sectors.min(capacity));
                let start = (first % capacity).min(capacity - len.get());
                Ok(Fitted {
                    extent: Extent::new(Lba::new(start), len),
                    widened,
                    moved: true,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wrap(capacity: u64, sector_bytes: u32) -> Fitter {
        Fitter::new(Sectors::new(capacity), sector_bytes, Fit::Wrap)
    }

    #[test]
    fn on_a_drive_with_smaller_sectors_a_request_has_more_of_them() {
        let fitter = Fitter::new(Sectors::new(100), 256, Fit::Refuse);
        let fitted = fitter.fit(Extent::at(10, 4)).unwrap();
        assert_eq!((fitted.extent, fitted.widened), (Extent::at(20, 8), false));
        assert!(fitter.fit(Extent::at(48, 2)).is_ok());
        assert_eq!(fitter.fit(Extent::at(49, 2)), Err(Extent::at(98, 4)));
        assert!(fitter.fit(Extent::at(u64::MAX / 2, 4)).is_err());
        assert_eq!(fitter.sector_bytes(), 256);
    }

    #[test]
    fn a_wrapped_request_keeps_its_length() {
        let fitter = wrap(1000, 512);
        for (from, to, moved) in [
            (Extent::at(992, 8), Extent::at(992, 8), false),
            (Extent::at(993, 8), Extent::at(992, 8), true),
            (Extent::at(1000, 8), Extent::at(0, 8), true),
            (Extent::at(5_123, 8), Extent::at(123, 8), true),
            (Extent::at(5_999, 8), Extent::at(992, 8), true),
            (Extent::at(10, 2000), Extent::at(0, 1000), true),
        ] {
            let fitted = fitter.fit(from).unwrap();
            assert_eq!((fitted.extent, fitted.moved), (to, moved), "{from}");
        }
    }

    #[test]
    fn a_refused_request_is_named_with_its_extent() {
        let fitter = Fitter::new(Sectors::new(1000), 512, Fit::Refuse);
        assert!(fitter.fit(Extent::at(992, 8)).is_ok());
        assert_eq!(fitter.fit(Extent::at(993, 8)), Err(Extent::at(993, 8)));
    }

    #[test]
    fn large_sectors_cover_what_was_asked() {
        let fitter = wrap(1000, 4096);
        for (from, to, widened) in [
            (Extent::at(8, 8), Extent::at(1, 1), false),
            (Extent::at(7, 2), Extent::at(0, 2), true),
            (Extent::at(9, 1), Extent::at(1, 1), true),
            (Extent::at(8, 9), Extent::at(1, 2), true),
        ] {
            let fitted = fitter.fit(from).unwrap();
            assert_eq!((fitted.extent, fitted.widened), (to, widened), "{from}");
        }
    }

    proptest! {
        #[test]
        fn a_fitted_request_is_always_on_the_drive(
            start in 0..crate::ADDRESS_END - crate::LENGTH_MAX,
            len in 1..=crate::LENGTH_MAX,
            capacity in 1_u64..1 << 40,
            sector_bytes in prop::sample::select(vec![512_u32, 1024, 4096]),
        ) {
            let fitted = wrap(capacity, sector_bytes).fit(Extent::at(start, len)).unwrap();
            prop_assert!(fitted.extent.end().get() <= capacity);
            let bytes = fitted.extent.len.bytes(sector_bytes);
            prop_assert!(bytes >= len * 512 || fitted.extent.len.get() == capacity);
            if !fitted.moved {
                let ratio = u64::from(sector_bytes / 512);
                let back = Extent::at(fitted.extent.start.get() * ratio, fitted.extent.len.get() * ratio);
                prop_assert!(back.covers(Extent::at(start, len)));
            }
        }
    }
}

//! The picture of a disk.

use super::super::super::curve::size;
use super::super::tracks::Tracks;
use super::Page;
use crate::plot::disk::{self as picture, DiskPicture, Seeks, Stretch};

impl Page<'_> {
    /// The picture.
    pub fn draw(&self) -> String {
        let words = self
            .lines()
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"));
        let mut subtitle = words.collect::<Vec<_>>().join("\n");
        subtitle.push_str(&format!("\n{}", self.sentence()));
        // The page has the list.
        match self.verdict.missing().count() {
            0 => {}
            1 => subtitle.push_str("\n1 key of the profile is not learned"),
            many => subtitle.push_str(&format!("\n{many} keys of the profile are not learned")),
        }
        let stretch = |tracks: &Tracks, value: f64| Stretch {
            from: self.bytes(tracks.from),
            to: self.bytes(tracks.to),
            value,
        };
        let each = |of: fn(&Tracks) -> f64| -> Vec<Stretch> {
            let zones = self.zones.iter();
            zones.map(|tracks| stretch(tracks, of(tracks))).collect()
        };
        let lengths = match self.zones.iter().any(|tracks| tracks.lengths.len() > 1) {
            false => vec![(String::new(), each(Tracks::mean))],
            true => vec![
                ("mean of the heads".to_owned(), each(Tracks::mean)),
                ("longest".to_owned(), each(|tracks| tracks.longest() as f64)),
                (
                    "shortest".to_owned(),
                    each(|tracks| tracks.shortest() as f64),
                ),
            ],
        };
        let skews = self.skew_names().into_iter().map(|(at, name)| {
            let parts = self.zones.iter().filter_map(|tracks| {
                let skews = tracks.skews?;
                Some(stretch(tracks, skews[at]))
            });
            (name.to_owned(), parts.collect::<Vec<_>>())
        });
        let seeks = self.seek_tables().into_iter().map(|(name, points)| Seeks {
            name: name.to_owned(),
            points: points
                .into_iter()
                .filter(|(distance, _)| *distance > 0)
                .map(|(distance, ms)| (f64::from(distance), ms))
                .collect(),
        });
        picture::draw(&DiskPicture {
            title: format!(
                "{}, {}",
                self.extraction.name(),
                size(self.extraction.capacity(), self.extraction.sector_bytes())
            ),
            subtitle,
            capacity: self.capacity(),
            tracks: lengths,
            skews: skews.filter(|(_, parts)| !parts.is_empty()).collect(),
            seeks: seeks.collect(),
            checks: self.checks(),
        })
    }

    fn checks(&self) -> Vec<(String, f64)> {
        let held = &self.extraction.held;
        if held.compared() == 0 {
            return Vec::new();
        }
        let compared = held.compared() as f64;
        let [one, two, three] = held.within;
        let rest = held
            .compared()
            .saturating_sub(three + held.late + held.early);
        let bars = [
            ("within 50 us", one),
            ("within 150 us", two),
            ("within 300 us", three),
            ("a turn late", held.late),
            ("a turn early", held.early),
            ("otherwise", rest),
        ];
        bars.map(|(name, count)| (name.to_owned(), 100.0 * count as f64 / compared))
            .to_vec()
    }
}

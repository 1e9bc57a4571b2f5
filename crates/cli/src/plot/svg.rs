//! Writes a picture as SVG text.
//!
//! There is no plotting library. Ten thousand strokes of one colour are one path, so the picture of a whole run stays small. Placing
//! text needs no font, only an upper bound of the text's width.

use std::fmt::Write;

/// Fonts in order of preference. Every viewer has the last.
const FONTS: &str =
    "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// Colour of text and axes.
pub const INK: &str = "#222222";
/// Colour of less important text.
pub const FAINT: &str = "#666666";
/// Colour of grid lines.
pub const GRID: &str = "#e2e2e2";
/// Colour behind everything.
pub const PAPER: &str = "#ffffff";
/// Colour of the papers' numbers.
pub const BLACK: &str = "#000000";
/// Colour of text on light bars, by day and by night.
pub const ON_LIGHT: &str = "#111111";

/// Colours that change on a dark screen. A style sheet takes precedence over the attributes of elements, and a viewer without style sheets shows the
/// light picture.
const DARK: [(&str, &str); 19] = [
    (PAPER, "#14181c"),
    (INK, "#e4e8ec"),
    (FAINT, "#9aa5b1"),
    (GRID, "#2c343c"),
    (BLACK, "#ffffff"),
    ("#bbbbbb", "#59636d"),
    ("#cccccc", "#4a545e"),
    ("#d9d9d9", "#3d4751"),
    ("#0072b2", "#26b1ff"),
    ("#d55e00", "#e8702a"),
    ("#009e73", "#00d9a0"),
    ("#cc79a7", "#f3c8e2"),
    ("#332288", "#7f78d8"),
    ("#56b4e9", "#8fd0f7"),
    ("#5b3a1e", "#b8865f"),
    ("#882255", "#d0307f"),
    ("#999933", "#c9c95a"),
    ("#5533dd", "#9d7bff"),
    ("#ff5577", "#ff8fa3"),
];

/// Returns the style sheet of dark screens.
fn dark() -> String {
    let rules = DARK.map(|(light, dark)| {
        format!("svg [fill=\"{light}\"]{{fill:{dark}}}svg [stroke=\"{light}\"]{{stroke:{dark}}}\n")
    });
    format!(
        "<style>@media screen and (prefers-color-scheme:dark){{\n{}}}</style>",
        rules.concat()
    )
}

/// Style of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Height of the letters in pixels.
    pub size: f64,
    /// True for bold letters.
    pub bold: bool,
    /// Colour of the letters.
    pub fill: &'static str,
}

impl Style {
    const fn new(size: f64, bold: bool, fill: &'static str) -> Style {
        Style { size, bold, fill }
    }

    /// Style of axis labels and legends.
    pub const PLAIN: Style = Style::new(12.0, false, INK);
    /// Style of tick labels and notes.
    pub const SMALL: Style = Style::new(11.0, false, FAINT);
    /// Style of panel names.
    pub const STRONG: Style = Style::new(12.0, true, INK);
    /// Style of the heading of a part.
    pub const HEADING: Style = Style::new(14.0, true, INK);
    /// Style of the title of a picture.
    pub const TITLE: Style = Style::new(17.0, true, INK);

    /// Returns the style in another colour.
    pub const fn in_colour(self, fill: &'static str) -> Style {
        Style { fill, ..self }
    }

    /// Returns an upper bound of a text's width in pixels, for all of the fonts. DejaVu Sans is the widest.
    pub fn width(&self, text: &str) -> f64 {
        let em: f64 = text
            .chars()
            .map(|letter| match letter {
                'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | ' ' | '(' | ')' => 0.40,
                'm' | 'w' | 'M' | 'W' | '%' => 0.98,
                letter if letter.is_uppercase() => 0.76,
                _ => 0.64,
            })
            .sum();
        em * self.size * if self.bold { 1.1 } else { 1.0 }
    }
}

/// A picture that is being drawn.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    body: String,
}

impl Svg {
    /// Starts an empty picture, `width` pixels wide.
    pub fn new(width: f64) -> Svg {
        Svg {
            width,
            body: String::new(),
        }
    }

    /// Draws a filled rectangle.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        let (x, y, width, height) = (Short(x), Short(y), Short(width), Short(height));
        self.push(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
        ));
    }

    /// Draws a straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let mut stroke = Path::default();
        stroke.move_to(from.0, from.1);
        stroke.line_to(to.0, to.1);
        self.path(&stroke, colour, width, "");
    }

    /// Draws a path. `dash` is a pattern of dashes and gaps in pixels, or empty.
    pub fn path(&mut self, path: &Path, colour: &str, width: f64, dash: &str) {
        if path.0.is_empty() {
            return;
        }
        let dash = match dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        let (width, data) = (Short(width), &path.0);
        self.push(format_args!(
            "<path d=\"{data}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\"{dash}/>"
        ));
    }

    /// Draws a text that begins at `x`, on the base line `y`.
    pub fn text(&mut self, x: f64, y: f64, style: Style, text: &str) {
        self.placed(&at(x, y), "", style, text);
    }

    /// Draws a text with its middle at `x`, on the base line `y`.
    pub fn centred(&mut self, x: f64, y: f64, style: Style, text: &str) {
        self.placed(&at(x, y), MIDDLE, style, text);
    }

    /// Draws a text that ends at `x`, on the base line `y`.
    pub fn ending(&mut self, x: f64, y: f64, style: Style, text: &str) {
        self.placed(&at(x, y), END, style, text);
    }

    /// Draws a text that runs upward along `x`, with its middle at `y`.
    pub fn upward(&mut self, x: f64, y: f64, style: Style, text: &str) {
        self.placed(&turned(x, y), MIDDLE, style, text);
    }

    /// Draws a text that runs upward along `x`, and ends at `y`.
    pub fn upward_to(&mut self, x: f64, y: f64, style: Style, text: &str) {
        self.placed(&turned(x, y), END, style, text);
    }

    fn placed(&mut self, place: &str, anchor: &str, style: Style, text: &str) {
        let weight = if style.bold {
            " font-weight=\"bold\""
        } else {
            ""
        };
        let (size, fill, text) = (Short(style.size), style.fill, Escaped(text));
        self.push(format_args!(
            "<text {place} font-size=\"{size}\" fill=\"{fill}\"{anchor}{weight}>{text}</text>"
        ));
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        self.body
            .write_fmt(element)
            .and_then(|()| self.body.write_char('\n'))
            .expect("a string takes everything");
    }

    /// Returns the whole SVG text, for a picture `height` pixels high.
    pub fn finish(self, height: f64) -> String {
        let (width, height, body) = (Short(self.width), Short(height), self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\">\n{}\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n{body}</svg>\n",
            dark()
        )
    }
}

const MIDDLE: &str = " text-anchor=\"middle\"";
const END: &str = " text-anchor=\"end\"";

fn turned(x: f64, y: f64) -> String {
    let (x, y) = (Short(x), Short(y));
    format!("transform=\"translate({x} {y}) rotate(-90)\"")
}

fn at(x: f64, y: f64) -> String {
    format!("x=\"{}\" y=\"{}\"", Short(x), Short(y))
}

/// A stroke that is being drawn.
#[derive(Clone, Debug, Default)]
pub struct Path(String);

impl Path {
    /// Moves the pen to a point without drawing.
    pub fn move_to(&mut self, x: f64, y: f64) {
        self.step('M', x, y);
    }

    /// Draws a line to a point.
    pub fn line_to(&mut self, x: f64, y: f64) {
        self.step('L', x, y);
    }

    fn step(&mut self, kind: char, x: f64, y: f64) {
        let (x, y) = (Short(x), Short(y));
        write!(self.0, "{kind}{x} {y}").expect("a string takes everything");
    }
}

/// A coordinate with at most one decimal place, which is finer than a screen shows.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        let sign = if tenths < 0 { "-" } else { "" };
        let tenths = tenths.unsigned_abs();
        match tenths % 10 {
            0 => write!(f, "{sign}{}", tenths / 10),
            part => write!(f, "{sign}{}.{part}", tenths / 10),
        }
    }
}

struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                letter if letter.is_control() => f.write_char(' ')?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        for (value, text) in [
            (1.0, "1"),
            (1.26, "1.3"),
            (-0.04, "0"),
            (-2.55, "-2.6"),
            (0.1, "0.1"),
        ] {
            assert_eq!(Short(value).to_string(), text);
        }
    }

    /// Contrast of two colours, 1 to 21, as the W3C's guidelines for accessible content define it.
    fn contrast(one: &str, other: &str) -> f64 {
        let light = |colour: &str| {
            let part = |from: usize, weight: f64| {
                let value = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
                weight * libm::pow(f64::from(value) / 255.0, 2.2)
            };
            part(1, 0.2126) + part(3, 0.7152) + part(5, 0.0722) + 0.05
        };
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn colours_are_seen_on_light_and_dark_paper() {
        let lines = crate::plot::LINES.map(|(colour, _)| colour);
        for colour in [INK, FAINT, BLACK].iter().chain(&lines) {
            let own = DARK.iter().find(|(light, _)| light == colour);
            let dark = own.map_or(*colour, |(_, dark)| *dark);
            assert!(contrast(colour, PAPER) > 2.0, "{colour}");
            assert!(contrast(dark, DARK[0].1) > 3.0, "{dark}");
        }
        let mut distinct = DARK.map(|(light, _)| light);
        distinct.sort_unstable();
        assert!(distinct.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::new(10.0);
        svg.ending(1.0, 2.0, Style::PLAIN, "a<b & \u{7}c");
        let text = svg.finish(5.0);
        assert!(
            text.contains("text-anchor=\"end\">a&lt;b &amp;  c</text>"),
            "{text}"
        );
    }
}

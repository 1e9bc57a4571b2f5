//! Lines of CSV.

/// A line of fields.
pub fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.map(|field| escaped(&field)).collect();
    format!("{}\n", fields.join(","))
}

/// A field as RFC 4180 wants it.
pub fn escaped(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(escaped("stream(a,b)"), "\"stream(a,b)\"");
        assert_eq!(escaped("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(escaped("noop"), "noop");
    }
}

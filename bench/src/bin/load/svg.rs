//! Drawings: as much of SVG as two kinds of plot need.

use std::fmt::Write as _;

/// A drawing on paper of its own colour, so that it can be read on any page.
#[derive(Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text ends up beside its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

pub(crate) const INK: &str = "#1f2328";
pub(crate) const FAINT: &str = "#59636e";
pub(crate) const RULE: &str = "#d1d9e0";
const PAPER: &str = "#ffffff";

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// A line from one place to another.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let _ = writeln!(
            self.body,
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{colour}" stroke-width="{width}"/>"#,
            from.0, from.1, to.0, to.1
        );
    }

    /// A filled rectangle with this corner at the top left.
    pub(crate) fn bar(&mut self, corner: (f64, f64), size: (f64, f64), colour: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{colour}"/>"#,
            corner.0, corner.1, size.0, size.1
        );
    }

    /// A line through places, and a dot at each.
    pub(crate) fn curve(&mut self, places: &[(f64, f64)], colour: &str) {
        let points: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.body,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
            points.join(" ")
        );
        for (x, y) in places {
            let _ = writeln!(self.body, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#);
        }
    }

    /// Words at a place.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, colour: &str, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{colour}">{words}</text>"#
        );
    }

    /// The file.
    pub(crate) fn finish(self) -> String {
        let Self { width, height, body } = self;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="system-ui, sans-serif" font-size="11">
<rect width="{width}" height="{height}" rx="6" fill="{PAPER}"/>
{body}</svg>
"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_one_element_with_paper_under_it() {
        let mut svg = Svg::new(100.0, 50.0);
        svg.text((1.0, 2.0), Anchor::End, INK, "a < b & c");
        svg.curve(&[(0.0, 0.0), (10.0, 5.25)], "#000000");
        let file = svg.finish();
        assert!(
            file.starts_with(r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50""#),
            "{file}"
        );
        assert!(file.contains(r##"<rect width="100" height="50" rx="6" fill="#ffffff"/>"##));
        assert!(file.contains(r##"text-anchor="end" fill="#1f2328">a &lt; b &amp; c</text>"##));
        assert!(file.contains(r#"points="0.0,0.0 10.0,5.2""#), "{file}");
        assert!(file.ends_with("</svg>\n"));
    }
}

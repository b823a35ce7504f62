use std::fmt;

use super::{
    image::{Image, ImageProtocol},
    paint::{Paint, Tone},
    printable::{Layout, Printable, cut},
};

/// A text to be printed. Its parts may come from a server: control characters are made visible when it is printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    spans: Vec<Span>,
}

#[derive(Clone, Debug)]
enum Span {
    Part { tone: Option<Tone>, text: String, layout: Layout },
    Image(Image),
    LineBreak,
}

/// How text is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rendering {
    pub(super) paint: Paint,
    /// Whether control characters are printed as they are.
    pub(super) raw: bool,
    /// How images are shown. `None` leaves them out.
    pub(super) images: Option<ImageProtocol>,
}

impl Text {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Adds a part of a line.
    pub(crate) fn add(&mut self, text: impl fmt::Display) -> &mut Self {
        self.part(None, text, Layout::Line)
    }

    /// Adds a part of a line in a tone.
    pub(crate) fn tone(&mut self, tone: Tone, text: impl fmt::Display) -> &mut Self {
        self.part(Some(tone), text, Layout::Line)
    }

    /// Adds a text that may have several lines, and ends the last one.
    pub(crate) fn block(&mut self, text: impl fmt::Display) -> &mut Self {
        let text = text.to_string();
        let text = text.strip_suffix('\n').unwrap_or(&text);
        self.part(None, text, Layout::Block).end()
    }

    /// Adds an image, on lines of its own.
    pub(crate) fn image(&mut self, image: Image) -> &mut Self {
        self.spans.push(Span::Image(image));
        self
    }

    pub(super) fn has_images(&self) -> bool {
        self.spans.iter().any(|span| matches!(span, Span::Image(_)))
    }

    /// Ends the line.
    pub(crate) fn end(&mut self) -> &mut Self {
        self.spans.push(Span::LineBreak);
        self
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> &mut Self {
        self.add(text).end()
    }

    /// Adds another text.
    pub(crate) fn append(&mut self, other: Self) -> &mut Self {
        self.spans.extend(other.spans);
        self
    }

    /// Returns the start of the text, without tones, in at most this many cells of a terminal.
    pub(super) fn shortened(&self, cells: usize) -> Self {
        let text = self.rendered_plain();
        match cut(&text, cells) {
            Some(_) => {
                let start = cut(&text, cells.saturating_sub(1)).unwrap_or(&text);
                Self::from(format_args!("{start}…"))
            }
            None => Self::from(text),
        }
    }

    /// Returns the text without tones.
    pub(crate) fn rendered_plain(&self) -> String {
        self.render(Rendering { paint: Paint::PLAIN, raw: false, images: None })
    }

    fn part(&mut self, tone: Option<Tone>, text: impl fmt::Display, layout: Layout) -> &mut Self {
        self.spans.push(Span::Part { tone, text: text.to_string(), layout });
        self
    }

    pub(super) fn render(&self, how: Rendering) -> String {
        let mut out = String::new();
        for span in &self.spans {
            match span {
                Span::LineBreak => out.push('\n'),
                Span::Image(image) => {
                    if let Some(protocol) = how.images {
                        image.render(protocol, &mut out);
                    }
                }
                Span::Part { tone, text, layout } => {
                    let shown = match (how.raw, layout) {
                        (false, layout) => Printable::new(text, *layout).to_string(),
                        (true, Layout::Block) => text.clone(),
                        // A name with a line break would look like two.
                        (true, Layout::Line) => text.replace('\n', "\\n").replace('\r', "\\r"),
                    };
                    match tone {
                        Some(tone) => out.push_str(&how.paint.paint(*tone, shown)),
                        None => out.push_str(&shown),
                    }
                }
            }
        }
        out
    }
}

/// Formats a number of things: `1 tool`, `2 tools`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl<T: fmt::Display> From<T> for Text {
    fn from(text: T) -> Self {
        let mut all = Self::new();
        all.add(text);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Text {
        let mut text = Text::new();
        text.add("name ").tone(Tone::Faint, "a\u{1b}\nb").end().block("x\ny\u{7}\n");
        text
    }

    #[test]
    fn control_characters_are_visible_unless_raw() {
        let plain = Rendering { paint: Paint::PLAIN, raw: false, images: None };
        assert_eq!(sample().render(plain), "name a\\u{1b}\\nb\nx\ny\\u{7}\n");
        let raw = Rendering { paint: Paint::PLAIN, raw: true, images: None };
        assert_eq!(sample().render(raw), "name a\u{1b}\\nb\nx\ny\u{7}\n");
    }

    #[test]
    fn a_shortened_text_fits() {
        let plain = Rendering { paint: Paint::PLAIN, raw: false, images: None };
        assert_eq!(Text::from("a\u{1b}bcd").shortened(5).render(plain), "a\\u{…");
        assert_eq!(Text::from("abcde").shortened(5).render(plain), "abcde");
        assert_eq!(Text::from("东东东").shortened(5).render(plain), "东东…");
        assert_eq!(Text::new().shortened(5).render(plain), "");
    }

    #[test]
    fn colours_are_those_of_the_command() {
        let text = sample().render(Rendering { paint: Paint::COLOURED, raw: false, images: None });
        assert_eq!(text, "name \u{1b}[2ma\\u{1b}\\nb\u{1b}[0m\nx\ny\\u{7}\n");
    }
}

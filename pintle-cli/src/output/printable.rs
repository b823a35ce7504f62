use std::fmt::{self, Write as _};

use unicode_width::UnicodeWidthChar as _;

/// Untrusted text as a terminal may show it: control, escape, bidirectional and invisible characters are replaced by their
/// escapes, such as `\u{1b}`.
///
/// Everything that the command prints passes through here, except bytes that are not for a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printable<'a> {
    text: &'a str,
    layout: Layout,
}

/// Whether line breaks of a text are part of its layout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Layout {
    /// A part of a line. Line breaks and tabs are replaced by their escapes.
    Line,
    /// A text of several lines. Line breaks and tabs are kept.
    Block,
}

impl<'a> Printable<'a> {
    pub(crate) fn new(text: &'a str, layout: Layout) -> Self {
        Self { text, layout }
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = Before::default();
        let mut letters = self.text.chars().peekable();
        while let Some(letter) = letters.next() {
            let is_shown = before.shows(letter, letters.peek().copied());
            match (letter, self.layout) {
                ('\n' | '\t', Layout::Block) => f.write_char(letter)?,
                // The line break of Windows. A lone one would overwrite the line.
                ('\r', Layout::Block) if letters.peek() == Some(&'\n') => {}
                ('\n', _) => f.write_str("\\n")?,
                ('\r', _) => f.write_str("\\r")?,
                ('\t', _) => f.write_str("\\t")?,
                _ if !is_shown => write!(f, "\\u{{{:x}}}", u32::from(letter))?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Replaces the hazardous characters of JSON text by JSON escapes. The value stays the same.
pub(crate) fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut before = Before::default();
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_shown = before.shows(letter, letters.peek().copied());
        if letter == '"' {
            // A mark at the start of a string is not one of the quotation mark.
            before = Before::default();
        }
        // Line breaks are the layout of the text: inside strings, JSON has them escaped already.
        if letter == '\n' || is_shown {
            out.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Returns the start of a part of a line that fits into this many cells of a terminal, if not all of it does.
pub(crate) fn cut(text: &str, cells: usize) -> Option<&str> {
    let mut before = Before::default();
    let mut taken = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let is_shown = before.shows(letter, letters.peek().map(|(_, letter)| *letter));
        taken += match letter {
            '\n' | '\r' | '\t' => 2,
            // It makes what is before it wider.
            '\u{fe0f}' if is_shown => 1,
            _ if is_shown => letter.width().unwrap_or_default(),
            _ => format!("{:x}", u32::from(letter)).len() + 4,
        };
        if taken > cells {
            return Some(&text[..at]);
        }
    }
    None
}

/// Returns whether a text has characters that are replaced when it is printed as a part of a line.
pub(crate) fn hides(text: &str) -> bool {
    let mut before = Before::default();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if !before.shows(letter, letters.peek().copied()) {
            return true;
        }
    }
    false
}

/// The marks that are drawn over one character at most; more of them would cover the lines around it.
const MAX_MARKS: usize = 4;

/// The character before another one, over which marks are drawn.
#[derive(Debug, Default)]
struct Before {
    base: Option<char>,
    marks: usize,
}

impl Before {
    /// Returns whether a character is shown as it is, between what was before and the next one.
    fn shows(&mut self, letter: char, next: Option<char>) -> bool {
        let is_shown = match (letter, self.base) {
            // One selector changes how an emoji looks. Any other is invisible, and so are many.
            ('\u{fe0f}', Some(base)) if self.marks == 0 => {
                is_emoji(base) || next == Some('\u{20e3}') && matches!(base, '0'..='9' | '#' | '*')
            }
            _ if is_hazardous(letter) => false,
            _ if letter.width() == Some(0) => self.base.is_some() && self.marks < MAX_MARKS,
            _ => {
                *self = Self { base: Some(letter).filter(|letter| !letter.is_whitespace()), marks: 0 };
                return true;
            }
        };
        match is_shown {
            true => self.marks += 1,
            false => *self = Self::default(),
        }
        is_shown
    }
}

/// Returns whether a character has an emoji presentation that U+FE0F selects.
fn is_emoji(letter: char) -> bool {
    matches!(letter,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{21aa}'
        | '\u{231a}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{27bf}' | '\u{2934}' | '\u{2935}'
        | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character controls a terminal, changes the direction of text, is invisible, or strikes out what is before it.
fn is_hazardous(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul and Khmer fillers, Mongolian selectors.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            // Marks that strike out a letter, and the blank pattern of braille.
            | '\u{334}'..='\u{338}' | '\u{2800}'
            // Selectors, which can hide a message, and controls of shorthand.
            | '\u{fe00}'..='\u{fe0f}' | '\u{1bca0}'..='\u{1bca3}'
            // Zero-width characters, direction marks, line and paragraph separators, embeddings, isolates, invisible operators.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Hangul fillers, byte order mark, interlinear annotations, object replacement.
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}'
            // Invisible musical controls, tags, and the selectors that can hide a message in an emoji.
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        Printable::new(text, Layout::Line).to_string()
    }

    fn block(text: &str) -> String {
        Printable::new(text, Layout::Block).to_string()
    }

    #[test]
    fn text_of_any_language_stays_as_it_is() {
        for text in [
            "plain",
            "Grüße, 東京, مرحبا, שלום",
            "👍 ✓ →",
            "a\\b",
            "⚠️ 1️⃣ ❤️",
            "e\u{301} \u{5d1}\u{5bc}\u{5b8} क्षि 각",
        ] {
            assert_eq!((line(text), block(text)), (text.to_owned(), text.to_owned()));
        }
    }

    #[test]
    fn hazardous_characters_are_visible() {
        assert_eq!(line("\u{1b}[31mred\u{7}"), r"\u{1b}[31mred\u{7}");
        // The escape of eight-bit terminals, and delete.
        assert_eq!(line("\u{9b}2J\u{7f}"), r"\u{9b}2J\u{7f}");
        assert_eq!(line("user\u{202e}txt.exe\u{2066}"), r"user\u{202e}txt.exe\u{2066}");
        assert_eq!(line("a\u{200b}b\u{feff}c\u{ad}"), r"a\u{200b}b\u{feff}c\u{ad}");
        // Tags and selectors, in which models read what people do not see.
        assert_eq!(line("x\u{e0041}\u{e0100}"), r"x\u{e0041}\u{e0100}");
        assert_eq!(line("ok\u{fe00}\u{fe02}a\u{fe0f}\u{2800}"), r"ok\u{fe00}\u{fe02}a\u{fe0f}\u{2800}");
        assert_eq!(line("⚠\u{fe0f}\u{fe0f}\u{fe0e}"), "⚠\u{fe0f}\\u{fe0f}\\u{fe0e}");
        // Marks over nothing, over a letter that they strike out, and too many of them.
        assert_eq!(line("\u{301}x \u{301}\u{1b}\u{301}a\u{336}"), r"\u{301}x \u{301}\u{1b}\u{301}a\u{336}");
        assert_eq!(
            line(&format!("a{}", "\u{301}".repeat(6))),
            format!("a{}\\u{{301}}\\u{{301}}", "\u{301}".repeat(4))
        );
    }

    #[test]
    fn line_breaks_are_kept_only_in_blocks() {
        assert_eq!(line("a\nb\tc\rd"), r"a\nb\tc\rd");
        assert_eq!(block("a\r\nb\tc\rd"), "a\nb\tc\\rd");
    }

    #[test]
    fn a_cut_text_fits_in_cells() {
        assert_eq!(cut("東京東京", 8), None);
        assert_eq!(cut("東京東京", 7), Some("東京東"));
        assert_eq!(cut("a\u{1b}b", 6), Some("a"));
        assert_eq!(cut("a\u{301}b", 2), None);
    }

    #[test]
    fn json_keeps_its_value() {
        let value =
            serde_json::json!({"a\u{202e}": "\u{1b}\u{9b}\u{e0041}\n", "b": ["é"], "c": "\u{301}\u{fe01}"});
        let escaped = escape_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(
            escaped.chars().all(|letter| letter == '\n' || !is_hazardous(letter) && letter != '\u{301}'),
            "{escaped}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        assert!(escaped.contains(r"\udb40\udc41") && escaped.contains('é'), "{escaped}");
    }
}

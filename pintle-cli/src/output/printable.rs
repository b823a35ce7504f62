use std::fmt::{self, Write as _};

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
        let mut letters = self.text.chars().peekable();
        while let Some(letter) = letters.next() {
            match (letter, self.layout) {
                ('\n' | '\t', Layout::Block) => f.write_char(letter)?,
                // The line break of Windows. A lone one would overwrite the line.
                ('\r', Layout::Block) if letters.peek() == Some(&'\n') => {}
                ('\n', _) => f.write_str("\\n")?,
                ('\r', _) => f.write_str("\\r")?,
                ('\t', _) => f.write_str("\\t")?,
                _ if is_hazardous(letter) => write!(f, "\\u{{{:x}}}", u32::from(letter))?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Replaces the hazardous characters of JSON text by JSON escapes. The value stays the same.
pub(crate) fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        // Line breaks are the layout of the text: inside strings, JSON has them escaped already.
        if letter == '\n' || !is_hazardous(letter) {
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

/// Returns whether a character controls a terminal, changes the direction of text, or is invisible.
pub(crate) fn is_hazardous(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul and Khmer fillers, Mongolian selectors.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
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
        for text in ["plain", "Grüße, 東京, مرحبا, שלום", "👍 ✓ →", "a\\b"] {
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
    }

    #[test]
    fn line_breaks_are_kept_only_in_blocks() {
        assert_eq!(line("a\nb\tc\rd"), r"a\nb\tc\rd");
        assert_eq!(block("a\r\nb\tc\rd"), "a\nb\tc\\rd");
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"a\u{202e}": "\u{1b}\u{9b}\u{e0041}\n", "b": ["é"]});
        let escaped = escape_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(escaped.chars().all(|letter| letter == '\n' || !is_hazardous(letter)), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        assert!(escaped.contains(r"\udb40\udc41") && escaped.contains('é'), "{escaped}");
    }
}

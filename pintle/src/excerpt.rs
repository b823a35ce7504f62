/// Returns the first `limit` characters of a text from a peer on one line, for errors and logs, which are read in terminals.
///
/// Line breaks become spaces; other control and formatting characters are escaped.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    let mut letters = text.trim().chars();
    for letter in letters.by_ref().take(limit) {
        match letter {
            '\n' | '\r' | '\t' => {
                if !shown.ends_with(' ') {
                    shown.push(' ');
                }
            }
            _ if letter.is_control() || is_format(letter) => shown.extend(letter.escape_unicode()),
            _ => shown.push(letter),
        }
    }
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Returns whether a character is invisible: direction, joining and break marks, and similar.
fn is_format(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn it_is_one_line_without_control_characters_and_cut_between_letters() {
        assert_eq!(excerpt("  a\r\n\tb \u{1b}[2Jc\u{7}\n", 99), "a b \\u{1b}[2Jc\\u{7}");
        assert_eq!(excerpt("invoice\u{202e}fdp.exe", 99), "invoice\\u{202e}fdp.exe");
        assert_eq!(excerpt(&"世".repeat(5), 4), "世世世世…");
        assert_eq!(excerpt(&"世".repeat(4), 4), "世世世世");
    }
}

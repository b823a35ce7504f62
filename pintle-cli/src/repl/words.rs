/// A word of a line, and where it begins there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LineWord {
    pub(super) text: String,
    pub(super) start: usize,
}

/// The words of a line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct LineWords {
    pub(super) words: Vec<LineWord>,
    /// Whether the last word ends with the line: more letters would belong to it.
    pub(super) is_in_word: bool,
    /// The quote that is not closed.
    pub(super) open_quote: Option<char>,
}

impl LineWords {
    /// Splits a line as a shell does: by spaces, quotes and backslashes. `#` begins a comment. Nothing else has a meaning.
    pub(super) fn split(line: &str) -> Self {
        let mut words = Vec::new();
        let mut word: Option<LineWord> = None;
        let mut quote = None;
        let mut letters = line.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            if quote.is_none() && letter.is_whitespace() {
                words.extend(word.take());
                continue;
            }
            if quote.is_none() && word.is_none() && letter == '#' {
                break;
            }
            let text = &mut word.get_or_insert(LineWord { text: String::new(), start: at }).text;
            match (quote, letter) {
                (Some(open), letter) if letter == open => quote = None,
                (None, '\'' | '"') => quote = Some(letter),
                (Some('"'), '\\') => match letters.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                    Some((_, next)) => text.push(next),
                    None => text.push('\\'),
                },
                (None, '\\') => text.extend(letters.next().map(|(_, next)| next)),
                (_, letter) => text.push(letter),
            }
        }
        let is_in_word = word.is_some();
        words.extend(word);
        Self { words, is_in_word, open_quote: quote }
    }
}

/// Quotes a word for such a line, if it needs that.
pub(super) fn line_quoted(word: &str) -> String {
    let special = |letter: char| letter.is_whitespace() || matches!(letter, '\'' | '"' | '\\');
    match word.is_empty() || word.starts_with('#') || word.contains(special) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        LineWords::split(line).words.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn a_line_has_words_as_in_a_shell() {
        for (line, words) in [
            ("call tide  port=bergen", &["call", "tide", "port=bergen"][..]),
            ("  ", &[]),
            ("# a comment", &[]),
            ("ls # tools", &["ls"]),
            ("read x#y", &["read", "x#y"]),
            (r#"a "b c"d 'e\f' \ g"#, &["a", "b cd", r"e\f", " g"]),
            (r#""a\"b\\c\d" ''"#, &[r#"a"b\c\d"#, ""]),
            (r#"call x '{"a": 1}'"#, &["call", "x", r#"{"a": 1}"#]),
            (r"end\", &["end"]),
        ] {
            assert_eq!(texts(line), words, "{line}");
        }
        assert_eq!(LineWords::split("say 'x y").open_quote, Some('\''));
        assert_eq!(LineWords::split("a 'b").words[1].start, 2);
        assert!(LineWords::split("a b").is_in_word && !LineWords::split("a b ").is_in_word);
    }

    #[test]
    fn a_quoted_word_is_read_as_it_was() {
        for word in ["plain", "", "a b", "it's", r"back\slash", "#x", "a\tb", "\"", "harbour://tides/{port}"]
        {
            assert_eq!(texts(&line_quoted(word)), [word]);
        }
    }
}

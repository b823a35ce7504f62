/// Truncates a text from a peer that is repeated in a message, to 80 characters.
pub(crate) fn shown(word: &str) -> Box<str> {
    cut(word, 80)
}

/// Truncates a text to `limit` characters.
pub(crate) fn cut(word: &str, limit: usize) -> Box<str> {
    match word.char_indices().nth(limit) {
        None => word.into(),
        Some((end, _)) => format!("{}…", &word[..end]).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_long_word_is_cut_between_characters() {
        assert_eq!(*shown(&"世".repeat(80)), *"世".repeat(80));
        assert_eq!(*shown(&"世".repeat(81)), *format!("{}…", "世".repeat(80)));
    }
}

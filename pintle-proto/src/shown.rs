/// A peer's own word, as far as it is repeated: enough to recognize it, not as much as the peer cares to send.
pub(crate) fn shown(word: &str) -> Box<str> {
    cut(word, 80)
}

/// The first characters of it, at most so many.
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

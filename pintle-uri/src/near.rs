//! Suggestions for misspelt names.

/// Longer words are not compared: a suggestion must not cost more than the check.
const MAX_LENGTH: usize = 64;
/// The limit of candidates that are compared, for the same reason.
const MAX_CANDIDATES: usize = 256;

/// Returns the candidate closest to `word`, if at most a third of its letters differ.
///
/// Not part of the public API: `pintle` shares it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = letters(word)?;
    let close = candidates.into_iter().take(MAX_CANDIDATES).filter_map(|candidate| {
        let known = letters(candidate)?;
        let distance = strsim::osa_distance(&word, &known);
        let shorter = word.chars().count().min(known.chars().count());
        (distance <= shorter / 3).then_some((distance, candidate))
    });
    close.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Returns letters and digits in lower case, so that `maxCount`, `max_count` and `Max-Count` are one word.
fn letters(word: &str) -> Option<String> {
    if word.len() > MAX_LENGTH {
        return None;
    }
    let letters: String =
        word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    (!letters.is_empty()).then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_is_found_and_no_far_one() {
        let known = ["count", "name", "max_items", "id"];
        for (word, meant) in [
            ("cuont", Some("count")),
            ("Count", Some("count")),
            ("counts", Some("count")),
            ("maxItems", Some("max_items")),
            ("ID", Some("id")),
            ("ix", None),
            ("title", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}

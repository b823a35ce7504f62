//! The known word that a misspelt one was meant to be.

/// Longer words are not compared, and no more than this many: a guess may not cost more than the check.
const LONGEST: usize = 64;
const MOST: usize = 256;

/// The candidate closest to `word`, if one is close enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(word)?;
    let close = candidates.into_iter().take(MOST).filter_map(|candidate| {
        let plain = plain(candidate)?;
        let apart = distance(&wanted, &plain);
        // A third of the letters may be wrong, but of two-letter words none.
        (apart <= wanted.len().min(plain.len()) / 3).then_some((apart, candidate))
    });
    close.min_by_key(|(apart, _)| *apart).map(|(_, candidate)| candidate)
}

/// Letters and digits only: `maxCount`, `max_count` and `Max-Count` are one word.
fn plain(word: &str) -> Option<Vec<char>> {
    if word.len() > LONGEST {
        return None;
    }
    let letters: Vec<char> =
        word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    (!letters.is_empty()).then_some(letters)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut next = vec![row + 1; other.len() + 1];
        for (column, b) in other.iter().enumerate() {
            let changed = last[column] + usize::from(a != b);
            next[column + 1] = changed.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && *a == other[column - 1] && one[row - 1] == *b {
                next[column + 1] = next[column + 1].min(before[column - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, next);
    }
    last[other.len()]
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

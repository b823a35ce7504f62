//! Scripts that are words of a command, such as that of `sh -c`.

use crate::text::{Part, Text};

/// Programs that run a script, and the letter of the option before it.
const INTERPRETERS: &[(&[&str], char)] = &[
    (&["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "su", "python", "python3"], 'c'),
    (&["node", "perl", "ruby", "lua", "Rscript", "osascript"], 'e'),
    (&["php"], 'r'),
];

/// A word of a command: its text without places, and whether it has some.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) has_place: bool,
}

impl Word {
    /// Returns the word of a text with places.
    pub(super) fn of(text: &Text) -> Self {
        let mut word = Self::default();
        for part in &text.0 {
            match part {
                Part::Literal(text) => word.text.push_str(text),
                Part::Place(_) => word.has_place = true,
            }
        }
        word
    }
}

/// Returns whether a word is this program, in whatever folder.
pub(super) fn is_program(word: &str, name: &str) -> bool {
    word.rsplit('/').next() == Some(name)
}

/// Refuses a command that pastes values into a script. A script that is a place alone is what the tool is for.
pub(super) fn pastes_into_script(words: &[Word]) -> Result<(), String> {
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.has_place && !word.text.is_empty()) {
        let Some((option, before)) = words[..at].split_last() else { continue };
        let Some(letters) = option.text.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else {
            continue;
        };
        let runs = |(names, letter): &(&[&str], char)| {
            letters.ends_with(*letter)
                && before.iter().any(|word| names.iter().any(|name| is_program(&word.text, name)))
        };
        if INTERPRETERS.iter().any(runs) {
            let program = before.last().map(|word| &*word.text).unwrap_or_default();
            return Err(format!(
                "a value would be pasted into the script `{}` of `{program} {}`: give it as an argument of the script, or write a line with `shell = true`",
                word.text, option.text
            ));
        }
    }
    Ok(())
}

//! The pager of the user, for results that are longer than the terminal.

use std::{
    env,
    io::Write as _,
    process::{Command, Stdio},
};

use unicode_width::UnicodeWidthChar as _;

const TAB: usize = 8;

/// The options of `less`: it ends if the text fits, shows colours, and leaves the text on the screen.
const LESS_OPTIONS: &str = "FRX";

/// Returns the program and its arguments: `$PAGER`, or `less`. `None` if the user has none: an empty one, or `cat`.
fn pager(variable: Option<&str>) -> Option<Vec<&str>> {
    let words: Vec<_> = variable.unwrap_or("less").split_whitespace().collect();
    match words.as_slice() {
        [] | ["cat"] => None,
        _ => Some(words),
    }
}

/// Shows a text in the pager, and waits until the user has left it. Returns whether there is a pager.
pub(super) fn show(text: &str) -> bool {
    let variable = env::var("PAGER").ok();
    let Some(words) = pager(variable.as_deref()) else { return false };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", LESS_OPTIONS);
    }
    // A program that does not exist is none.
    let Ok(mut process) = command.spawn() else { return false };
    if let Some(mut stdin) = process.stdin.take() {
        // A user who has seen enough closes it.
        let _ = stdin.write_all(text.as_bytes());
    }
    process.wait().is_ok()
}

/// Returns whether a text has more lines than a terminal, in which long lines wrap.
pub(super) fn is_longer(text: &str, rows: usize, columns: usize) -> bool {
    let rows_of = |line: &str| cells(line).div_ceil(columns.max(1)).max(1);
    text.lines().map(rows_of).sum::<usize>() >= rows
}

/// Returns the cells that a line takes: colours take none, and some letters take two.
fn cells(line: &str) -> usize {
    let mut cells = 0;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => drop(letters.find(|letter| *letter == 'm')),
            '\t' => cells += TAB - cells % TAB,
            letter => cells += letter.width().unwrap_or_default(),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cat_and_nothing_are_no_pagers() {
        assert_eq!(pager(None), Some(vec!["less"]));
        assert_eq!(pager(Some("less -S")), Some(vec!["less", "-S"]));
        assert_eq!(pager(Some(" ")), None);
        assert_eq!(pager(Some("cat")), None);
    }

    #[test]
    fn lines_that_wrap_are_counted() {
        assert!(!is_longer("a\nb\n", 3, 10));
        assert!(is_longer("a\nb\nc\n", 3, 10));
        assert!(is_longer("aaaaaaaaaaa\nb\n", 3, 10));
        assert!(is_longer("東東東東東東\nb\n", 3, 10));
        assert!(!is_longer("\u{1b}[1;36maaaaaaaaaa\u{1b}[0m\nb\n", 3, 10));
    }
}

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use unicode_width::UnicodeWidthChar as _;

use super::terminal;

/// The width of a terminal that does not tell it.
const DEFAULT_COLUMNS: usize = 80;
const TAB: usize = 8;

/// The line that the user is editing, so that notices can be printed above it. A clone is the same line.
#[derive(Clone, Debug, Default)]
pub(crate) struct EditedLine(Arc<Mutex<Option<LineState>>>);

#[derive(Clone, Debug, Default)]
struct LineState {
    /// The prompt, without colours and with them.
    prompt: (String, String),
    text: String,
    /// Where the cursor is, in bytes of the text.
    position: usize,
}

/// A cell of the terminal, counted from the start of the prompt.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Cell {
    row: usize,
    column: usize,
}

impl EditedLine {
    /// Notes that a line is edited from now on.
    pub(crate) fn begin(&self, prompt: (String, String)) {
        *self.lock() = Some(LineState { prompt, ..LineState::default() });
    }

    /// Notes what is typed, and where the cursor is.
    pub(crate) fn update(&self, text: &str, position: usize) {
        if let Some(line) = &mut *self.lock() {
            line.text.clear();
            line.text.push_str(text);
            line.position = position;
        }
    }

    /// Notes that the line is not edited any more.
    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    /// Returns what to write to print lines above the one that is edited. `None` if none is.
    pub(super) fn print_above(&self, lines: &str) -> Option<String> {
        let columns = terminal::columns().unwrap_or(DEFAULT_COLUMNS);
        self.lock().as_ref().map(|line| line.print_above(lines, columns))
    }

    fn lock(&self) -> MutexGuard<'_, Option<LineState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineState {
    /// Removes the line, prints others, and prints the line again. The cursor is where it was, counted from the prompt.
    fn print_above(&self, lines: &str, columns: usize) -> String {
        let start = Cell::default().after(&self.prompt.0, columns);
        let before = self.text.get(..self.position).unwrap_or(&self.text);
        let cursor = start.after(before, columns);
        let end = start.after(&self.text, columns);
        let mut out = String::new();
        up(cursor.row, &mut out);
        out.push_str("\r\x1b[J");
        out.push_str(lines);
        out.extend([self.prompt.1.as_str(), &self.text]);
        if end.column == 0 && end.row > 0 {
            // The terminal waits for another letter before it begins the row.
            out.push('\n');
        }
        up(end.row - cursor.row, &mut out);
        out.push('\r');
        if cursor.column > 0 {
            // Writing to a string does not fail.
            let _ = write!(out, "\x1b[{}C", cursor.column);
        }
        out
    }
}

impl Cell {
    /// Returns the cell after a text that begins here.
    fn after(self, text: &str, columns: usize) -> Self {
        let Self { mut row, mut column } = self;
        for letter in text.chars() {
            let width = match letter {
                '\n' => {
                    (row, column) = (row + 1, 0);
                    continue;
                }
                '\t' => TAB - column % TAB,
                letter => letter.width().unwrap_or_default(),
            };
            column += width;
            if column > columns {
                (row, column) = (row + 1, width);
            }
        }
        if column == columns {
            (row, column) = (row + 1, 0);
        }
        Self { row, column }
    }
}

fn up(rows: usize, out: &mut String) {
    if rows > 0 {
        // Writing to a string does not fail.
        let _ = write!(out, "\x1b[{rows}A");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn above(text: &str, position: usize) -> String {
        let prompt = ("x> ".to_owned(), "\x1b[1mx\x1b[0m> ".to_owned());
        LineState { prompt, text: text.to_owned(), position }.print_above("note\n", 10)
    }

    #[test]
    fn the_line_is_shown_again_below() {
        assert_eq!(above("", 0), "\r\x1b[Jnote\n\x1b[1mx\x1b[0m> \r\x1b[3C");
        assert_eq!(above("ab", 1), "\r\x1b[Jnote\n\x1b[1mx\x1b[0m> ab\r\x1b[4C");
        // Two rows, with the cursor in the second and in the first.
        assert_eq!(above("abcdefghi", 9), "\x1b[1A\r\x1b[Jnote\n\x1b[1mx\x1b[0m> abcdefghi\r\x1b[2C");
        assert_eq!(above("abcdefghi", 1), "\r\x1b[Jnote\n\x1b[1mx\x1b[0m> abcdefghi\x1b[1A\r\x1b[4C");
        // A full row.
        assert_eq!(above("abcdefg", 7), "\x1b[1A\r\x1b[Jnote\n\x1b[1mx\x1b[0m> abcdefg\n\r");
        // Letters that are two cells wide.
        assert_eq!(above("東京", 6), "\r\x1b[Jnote\n\x1b[1mx\x1b[0m> 東京\r\x1b[7C");
    }

    #[test]
    fn without_a_line_nothing_is_above() {
        let line = EditedLine::default();
        assert_eq!(line.print_above("x\n"), None);
        line.begin(("> ".to_owned(), "> ".to_owned()));
        line.update("ab", 2);
        assert!(line.print_above("x\n").is_some_and(|shown| shown.ends_with("> ab\r\x1b[4C")));
        line.end();
        assert_eq!(line.print_above("x\n"), None);
    }
}

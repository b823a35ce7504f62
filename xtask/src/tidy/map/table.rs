//! Tables of a Markdown text.

/// One row of a table, without its head.
pub(super) struct TableRow<'a> {
    /// The line in the text, from 1.
    pub(super) line: usize,
    pub(super) cells: Vec<&'a str>,
}

/// The rows of the first table whose head is `head`. Lines may have a prefix, such as that of a comment.
pub(super) fn rows<'a>(text: &'a str, prefix: &str, head: &str) -> Vec<TableRow<'a>> {
    let lines = text.lines().map(|line| line.strip_prefix(prefix).unwrap_or(line).trim()).zip(1..);
    let below = lines.skip_while(|(line, _)| *line != head).skip(2);
    below
        .take_while(|(line, _)| line.starts_with('|'))
        .map(|(line, number)| TableRow {
            line: number,
            cells: line.trim_matches('|').split('|').map(str::trim).collect(),
        })
        .collect()
}

/// The texts in backticks of a line.
pub(super) fn spans(line: &str) -> impl Iterator<Item = &str> {
    let pieces = line.matches('`').count() / 2 * 2;
    line.split('`').take(pieces).skip(1).step_by(2)
}

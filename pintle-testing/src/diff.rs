use std::fmt::Write;

/// Lines of context around each difference.
const AROUND: usize = 3;
/// Above this many pairs of lines, the middle is shown as one block, because a comparison would be slow.
const MAX_PAIRS: usize = 4_000_000;

#[derive(Clone, Copy, Eq, PartialEq)]
enum LineOrigin {
    Both,
    Expected,
    Found,
}

/// Returns the differences, line by line: `-` was expected, `+` was found.
pub(crate) fn diff(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let lines = compare(&expected, &found);
    let mut out = String::new();
    let mut shown_to = 0;
    for (at, _) in lines.iter().enumerate().filter(|(_, (side, _))| *side != LineOrigin::Both) {
        let from = at.saturating_sub(AROUND).max(shown_to);
        let to = (at + AROUND + 1).min(lines.len());
        if from > shown_to || (shown_to == 0 && from > 0) {
            out.push_str("  …\n");
        }
        for (side, line) in &lines[from.min(to)..to] {
            let mark = match side {
                LineOrigin::Both => ' ',
                LineOrigin::Expected => '-',
                LineOrigin::Found => '+',
            };
            let _ = writeln!(out, "{mark} {line}");
        }
        shown_to = shown_to.max(to);
    }
    out
}

fn compare<'a>(expected: &[&'a str], found: &[&'a str]) -> Vec<(LineOrigin, &'a str)> {
    let before = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
    let (head, expected) = expected.split_at(before);
    let found = &found[before..];
    let after = expected.iter().rev().zip(found.iter().rev()).take_while(|(one, other)| one == other).count();
    let (expected, tail) = expected.split_at(expected.len() - after);
    let found = &found[..found.len() - after];
    let mut lines: Vec<_> = head.iter().map(|line| (LineOrigin::Both, *line)).collect();
    lines.extend(middle(expected, found));
    lines.extend(tail.iter().map(|line| (LineOrigin::Both, *line)));
    lines
}

/// The longest common subsequence, by dynamic programming.
fn middle<'a>(expected: &[&'a str], found: &[&'a str]) -> Vec<(LineOrigin, &'a str)> {
    let width = found.len() + 1;
    let mut lines = Vec::new();
    let (mut row, mut column) = (0, 0);
    if expected.len().saturating_mul(found.len()) <= MAX_PAIRS {
        let mut common = vec![0_u32; (expected.len() + 1) * width];
        for row in (0..expected.len()).rev() {
            for column in (0..found.len()).rev() {
                let at = row * width + column;
                common[at] = if expected[row] == found[column] {
                    common[at + width + 1] + 1
                } else {
                    common[at + width].max(common[at + 1])
                };
            }
        }
        while row < expected.len() && column < found.len() {
            let at = row * width + column;
            if expected[row] == found[column] {
                lines.push((LineOrigin::Both, expected[row]));
                (row, column) = (row + 1, column + 1);
            } else if common[at + width] >= common[at + 1] {
                lines.push((LineOrigin::Expected, expected[row]));
                row += 1;
            } else {
                lines.push((LineOrigin::Found, found[column]));
                column += 1;
            }
        }
    }
    lines.extend(expected[row..].iter().map(|line| (LineOrigin::Expected, *line)));
    lines.extend(found[column..].iter().map(|line| (LineOrigin::Found, *line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_different_is_shown_and_a_little_around_it() {
        let expected = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let found = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n";
        assert_eq!(
            diff(expected, found),
            "  …\n  2\n  3\n  4\n- 5\n+ five\n  6\n  7\n  8\n  …\n  10\n  11\n  12\n+ 13\n"
        );
        assert_eq!(diff("same\n", "same\n"), "");
        assert_eq!(diff("", "new\n"), "+ new\n");
    }
}

use crate::output::{Text, Tone};

/// The number of unchanged lines around a change.
const CONTEXT: usize = 2;

/// Prints the lines that an edit changes, and some around them. An edit is in one place, so one hunk has all of it.
pub(super) fn print(before: &str, after: &str, text: &mut Text) {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(old, new)| old == new).count();
    let shorter = before.len().min(after.len()) - same;
    let ends = before.iter().rev().zip(after.iter().rev()).take(shorter);
    let same_end = ends.take_while(|(old, new)| old == new).count();
    let mut lines = |tone: Tone, sign: &str, lines: &[&str]| {
        for line in lines {
            text.tone(tone, sign).tone(tone, line).end();
        }
    };
    let (old_end, new_end) = (before.len() - same_end, after.len() - same_end);
    lines(Tone::Faint, "  ", &before[same.saturating_sub(CONTEXT)..same]);
    lines(Tone::Error, "- ", &before[same..old_end]);
    lines(Tone::Out, "+ ", &after[same..new_end]);
    lines(Tone::Faint, "  ", &before[old_end..(old_end + CONTEXT).min(before.len())]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str) -> String {
        let mut text = Text::new();
        print(before, after, &mut text);
        text.rendered_plain()
    }

    #[test]
    fn only_what_changed_is_shown() {
        assert_eq!(diff("a\nb\nc\nd\ne\n", "a\nb\nc\nX\nd\ne\n"), "  b\n  c\n+ X\n  d\n  e\n");
        assert_eq!(diff("a\nb\na\nb\n", "a\nb\n"), "  a\n  b\n- a\n- b\n");
        assert_eq!(diff("", "x\n"), "+ x\n");
        assert_eq!(diff("a\n", "b\n"), "- a\n+ b\n");
        assert_eq!(diff("x\nx\n", "x\nx\nx\n"), "  x\n  x\n+ x\n");
    }
}

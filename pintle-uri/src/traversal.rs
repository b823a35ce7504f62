//! The check that makes variables safe to join to a path.

use super::parse::Operator;

/// Whether a decoded value could lead out of the directory that it is joined to.
pub(super) fn escapes(operator: Operator, text: &str, items: &[String]) -> bool {
    // The whole of `{/a*}` has slashes between its items, and nothing that they do not have.
    let whole = (operator != Operator::Path).then_some(text);
    items.iter().map(String::as_str).chain(whole).any(|text| match operator {
        Operator::Simple | Operator::Label | Operator::Path => !is_plain_segment(text),
        Operator::Reserved => {
            text.contains('\0')
                || text.starts_with(['/', '\\'])
                || has_drive(text)
                || text.split(['/', '\\']).any(|segment| matches!(segment, "." | ".."))
        }
        // These are seldom paths, so `.` and `/` are allowed, but `..` is not.
        Operator::Fragment | Operator::Parameter | Operator::Query | Operator::Continuation => {
            text.contains('\0') || text.split(['/', '\\']).any(|segment| segment == "..")
        }
    })
}

fn is_plain_segment(text: &str) -> bool {
    let drive = cfg!(windows) && has_drive(text);
    !drive && !matches!(text, "" | "." | "..") && !text.contains(['/', '\\', '\0'])
}

/// `C:` and what follows: joined to a path, it replaces the path.
fn has_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

//! Answers that are cut to what a model can read: between the items of a list, where there is one.

use serde::Serialize;
use serde_json::{Map, Value};

/// The bytes below which nothing of a value is kept.
const MIN_KEPT: usize = 256;
/// How deep the item that is too large alone is looked into.
const MAX_DEPTH: usize = 16;
/// How many members of an object are cut before it has fewer members.
const MAX_MEMBERS: usize = 16;
/// How many parts a note names.
const SHOWN: usize = 3;

/// A part of an answer of which only the beginning is left.
struct CutPart {
    path: String,
    kept: usize,
    all: usize,
    what: &'static str,
}

/// Cuts an answer to this number of bytes as JSON, and returns what to tell then.
pub(super) fn value(answer: &mut Value, limit: usize) -> Option<String> {
    let mut parts = Vec::new();
    cut(answer, limit, "", 0, &mut parts);
    let note = |CutPart { path, kept, all, what }: &CutPart| {
        let name = if path.is_empty() { "the answer".to_owned() } else { format!("`{path}`") };
        format!("{name} has only the first {kept} of {all} {what}, ")
    };
    let notes: String = parts.iter().take(SHOWN).map(note).collect();
    (!parts.is_empty()).then(|| format!("{notes}because a result has at most {limit} bytes"))
}

/// Cuts a text to this number of bytes, and returns what to tell then.
pub(super) fn text(text: &str, limit: usize) -> (&str, Option<String>) {
    if text.len() <= limit {
        return (text, None);
    }
    let kept = text.char_indices().map(|(start, _)| start).take_while(|start| *start <= limit).last();
    let kept = text.get(..kept.unwrap_or_default()).unwrap_or_default();
    (kept, Some(format!("this is only the first {} of {} bytes of the answer", kept.len(), text.len())))
}

fn cut(value: &mut Value, limit: usize, path: &str, depth: usize, parts: &mut Vec<CutPart>) {
    match value {
        Value::Array(items) => list(items, limit, path, depth, parts),
        Value::Object(members) => object(members, limit, path, depth, parts),
        Value::String(text) if size(text) > limit => {
            let all = text.len();
            let mut left = limit.saturating_sub("\"…\"".len());
            let fits = |letter: char| {
                left = left.checked_sub(size(&letter) - 2)?;
                Some(letter.len_utf8())
            };
            let kept = text.chars().map_while(fits).sum();
            text.truncate(kept);
            text.push('…');
            parts.push(CutPart { path: path.to_owned(), kept, all, what: "bytes" });
        }
        _ => {}
    }
}

fn list(items: &mut Vec<Value>, limit: usize, path: &str, depth: usize, parts: &mut Vec<CutPart>) {
    let all = items.len();
    let mut used = 1;
    let fits = |item: &&Value| {
        used += size(item) + 1;
        used <= limit
    };
    let kept = items.iter().take_while(fits).count();
    if kept == all {
        return;
    }
    // The beginning of an item that is too large alone is more than nothing.
    let is_begun = kept == 0 && limit >= MIN_KEPT && depth < MAX_DEPTH;
    items.truncate(if is_begun { 1 } else { kept });
    if all > items.len() {
        parts.push(CutPart { path: path.to_owned(), kept: items.len(), all, what: "items" });
    }
    if let (Some(item), true) = (items.first_mut(), is_begun) {
        cut(item, limit - 2, &format!("{path}[0]"), depth + 1, parts);
    }
}

fn object(
    members: &mut Map<String, Value>,
    limit: usize,
    path: &str,
    depth: usize,
    parts: &mut Vec<CutPart>,
) {
    let all = members.len();
    let of_member = |name: &str, value: &Value| size(name) + size(value) + 2;
    let mut sizes: Vec<_> =
        members.iter().map(|(name, value)| (of_member(name, value), name.clone())).collect();
    let mut used = 1 + sizes.iter().map(|(size, _)| size).sum::<usize>();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let is_deep = depth == MAX_DEPTH;
    for (before, name) in sizes.iter().take(if is_deep { 0 } else { MAX_MEMBERS }) {
        if used <= limit || *before < MIN_KEPT {
            break;
        }
        let Some(member) = members.get_mut(name) else { continue };
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let others = used - size(member);
        cut(member, limit.saturating_sub(others), &path, depth + 1, parts);
        used = others + size(member);
    }
    if used > limit {
        used = 1;
        members.retain(|name, value| {
            used += of_member(name, value);
            used <= limit
        });
        parts.push(CutPart { path: path.to_owned(), kept: members.len(), all, what: "members" });
    }
}

/// Returns how many bytes a value has as JSON.
fn size(value: &(impl Serialize + ?Sized)) -> usize {
    // What is JSON already can be printed.
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cut_to(mut value: Value, limit: usize) -> (Value, String) {
        let note = super::value(&mut value, limit).unwrap_or_default();
        assert!(value.to_string().len() <= limit, "{limit}: {}", value.to_string().len());
        (value, note)
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        for value in [json!([1, 2]), json!({ "a": "é\"\n" }), json!({}), json!([]), json!("…"), json!(1.5)]
        {
            let length = value.to_string().len();
            assert_eq!(cut_to(value.clone(), length), (value, String::new()));
        }
    }

    #[test]
    fn the_largest_list_is_cut_between_items() {
        let items: Vec<_> = (100..200).map(|id| json!({ "id": id })).collect();
        let (value, note) = cut_to(items.clone().into(), 45);
        assert_eq!(value, json!([{ "id": 100 }, { "id": 101 }, { "id": 102 }, { "id": 103 }]));
        assert_eq!(
            note,
            "the answer has only the first 4 of 100 items, because a result has at most 45 bytes"
        );
        let whole = json!({ "next": "x", "data": { "few": [1, 2], "items": items }, "total": 100 });
        let (value, note) = cut_to(whole, 400);
        assert_eq!(
            (&value["next"], &value["data"]["few"], &value["total"]),
            (&json!("x"), &json!([1, 2]), &json!(100))
        );
        let kept = value["data"]["items"].as_array().unwrap().len();
        assert!(kept > 25, "{kept}");
        assert!(note.starts_with(&format!("`data.items` has only the first {kept} of 100 items")), "{note}");
    }

    #[test]
    fn an_item_that_is_too_large_alone_is_begun() {
        let rows: Vec<_> = (0..1_000).collect();
        let (value, note) = cut_to(json!([{ "rows": rows, "text": "é\n".repeat(500) }, 2]), 600);
        assert!(value[0]["rows"].as_array().unwrap().len() < 100, "{value}");
        assert!(note.contains("the first 1 of 2 items, `[0].rows` has only the first"), "{note}");
        let (value, note) = cut_to(json!({ "a": "é\n".repeat(500) }), 305);
        assert_eq!(value["a"].as_str().unwrap(), format!("{}é…", "é\n".repeat(73)), "{note}");
        assert!(note.starts_with("`a` has only the first 221 of 1500 bytes"), "{note}");
    }

    #[test]
    fn an_object_that_is_a_map_has_fewer_members() {
        let map: Map<_, _> = (0..1_000).map(|number| (format!("k{number}"), number.into())).collect();
        let (value, note) = cut_to(map.into(), 100);
        assert_eq!(value.as_object().unwrap().len(), 13);
        assert!(note.starts_with("the answer has only the first 13 of 1000 members"), "{note}");
    }

    #[test]
    fn nothing_is_deep_enough_to_be_kept_whole() {
        let deep = (0..100).fold(json!("x".repeat(2_000)), |inner, _| json!({ "a": [inner] }));
        for limit in [2, 10, 300, 1_000] {
            cut_to(deep.clone(), limit);
        }
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(text("éé", 4), ("éé", None));
        let (kept, note) = text("ééé", 3);
        assert_eq!(
            (kept, note.unwrap()),
            ("é", "this is only the first 2 of 6 bytes of the answer".to_owned())
        );
        assert_eq!(text("é", 0).0, "");
    }
}

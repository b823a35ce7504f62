use std::borrow::Cow;

/// Decodes a JSON string, borrowed if it has no escapes.
pub(crate) fn text(json: &str) -> serde_json::Result<Cow<'_, str>> {
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        _ => serde_json::from_str::<String>(json).map(Cow::Owned),
    }
}

/// The kind of a media type: how it is read and written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Media {
    Json,
    Form,
    Multipart,
    Text,
    Image,
    Audio,
    Binary,
}

impl Media {
    /// Returns what a media type is, with or without parameters.
    pub(crate) fn of(media_type: &str) -> Self {
        let essence = essence(media_type);
        let (kind, rest) = essence.split_once('/').unwrap_or((&essence, ""));
        match (kind, rest) {
            ("*", _) | ("application", "*" | "json" | "x-json") | ("text", "json" | "x-json") => Self::Json,
            (_, rest) if rest.ends_with("+json") => Self::Json,
            ("application", "x-www-form-urlencoded") => Self::Form,
            ("multipart", _) => Self::Multipart,
            ("text", _) => Self::Text,
            (_, rest) if rest.ends_with("+xml") && kind == "application" => Self::Text,
            ("application", "xml" | "yaml" | "x-yaml" | "x-ndjson" | "jsonl" | "javascript" | "graphql") => {
                Self::Text
            }
            ("image", _) => Self::Image,
            ("audio", _) => Self::Audio,
            _ => Self::Binary,
        }
    }

    /// Returns how well a media type serves for a body, the lowest best.
    pub(crate) fn rank(media_type: &str) -> usize {
        let essence = essence(media_type);
        match (Self::of(&essence), essence.as_str()) {
            (Self::Json, "application/json") => 0,
            // Of the ways to patch, the one that is an object of what changes.
            (Self::Json, "application/merge-patch+json") => 1,
            (Self::Json, "application/json-patch+json") => 4,
            (Self::Json, essence) if essence.contains('*') => 3,
            (Self::Json, _) => 2,
            (Self::Form, _) => 5,
            (Self::Multipart, _) => 6,
            (Self::Text, "text/plain") => 7,
            (Self::Text, _) => 8,
            _ => 9,
        }
    }
}

/// Returns a media type in lower case and without parameters.
pub(crate) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

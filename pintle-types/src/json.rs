/// A JSON object of any shape.
///
/// Members are sorted by name, because that is how `serde_json` keeps them.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

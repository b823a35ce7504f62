/// A JSON object whose members nobody here has looked at.
///
/// Members are sorted by name, because that is how `serde_json` keeps them.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

use serde_json::Value;

/// The version of OpenAPI that a document is written in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Version {
    /// 3.0, with schemas of its own.
    V30,
    /// 3.1, with schemas of JSON Schema 2020-12.
    V31,
    /// 3.2, which is read as 3.1: its new words are left out.
    V32,
}

impl Version {
    /// Returns the version of a document, or why it has none that can be read.
    pub(super) fn of(root: &Value) -> Result<Self, String> {
        if root.get("swagger").is_some() {
            return Err(
                "it is OpenAPI 2.0 (Swagger), which is not read; convert it to OpenAPI 3, for example with \
                        `npx swagger2openapi`"
                    .to_owned(),
            );
        }
        let version = match root.get("openapi") {
            Some(Value::String(version)) => version.clone(),
            // YAML without quotes.
            Some(Value::Number(version)) => version.to_string(),
            _ => {
                return Err("it has no `openapi`, so it is no OpenAPI document; name one that begins with \
                             `openapi: 3.1.0`"
                    .to_owned());
            }
        };
        let is = |wanted: &str| version == wanted || version.starts_with(&format!("{wanted}."));
        match () {
            () if is("3.0") || version == "3" => Ok(Self::V30),
            () if is("3.1") => Ok(Self::V31),
            () if is("3.2") => Ok(Self::V32),
            () => {
                let shown: String = version.chars().take(32).collect();
                Err(format!("OpenAPI `{shown}` is not known; 3.0, 3.1 and 3.2 are"))
            }
        }
    }

    /// Returns whether schemas are those of 3.0.
    pub(crate) fn is_30(self) -> bool {
        self == Self::V30
    }
}

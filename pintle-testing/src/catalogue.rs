use std::{fmt, path::Path};

use pintle::{Connection, Result, Server};
use serde::Serialize;
use serde_json::Value;

use crate::{TestClient, diff::diff, print::print};

/// Environment variable that makes `assert_file` write files instead of comparing them.
const BLESS: &str = "PINTLE_BLESS";

/// A snapshot of what a server offers, as text: its identity, tools, prompts, resources and templates.
///
/// The text is deterministic, so that a diff shows what a change means for the model.
///
/// ```
/// use pintle::{Server, server::tool};
/// use pintle_testing::CatalogueSnapshot;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::new("demo", "1.0.0").tool(tool("hello", || async { "hello" }).description("Greets."));
/// CatalogueSnapshot::of(&server).await.assert_is(r#"
/// server demo 1.0.0
///
/// tool hello
///   | Greets.
///   inputSchema: {"properties": {}, "type": "object"}
/// "#);
/// # }
/// ```
///
/// Larger catalogues are better kept in a file. `PINTLE_BLESS=1 cargo test` writes it:
///
/// ```no_run
/// # async fn example(server: pintle::Server) {
/// use pintle_testing::CatalogueSnapshot;
///
/// CatalogueSnapshot::of(&server).await.assert_file("tests/catalogue.txt");
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CatalogueSnapshot(String);

impl CatalogueSnapshot {
    /// Lists what a server offers to a client with all capabilities, in the newest revision.
    ///
    /// # Panics
    ///
    /// The server is invalid, or a list could not be fetched.
    pub async fn of(server: &Server) -> Self {
        let client = TestClient::new().roots(["file:///"]).connect(server).await;
        let catalogue = client.catalogue().await;
        client.finish().await;
        catalogue
    }

    pub(crate) async fn seen_by(connection: &Connection) -> Self {
        let can = connection.capabilities();
        let mut text = String::from("server");
        if let Some(info) = connection.server_info() {
            text.push_str(&format!(" {} {}\n", info.name, info.version));
            entry(&mut text, &*info, &["name", "version"]);
        } else {
            text.push('\n');
        }
        if let Some(instructions) = connection.instructions() {
            text.push_str("  instructions:\n");
            lines(&mut text, "  | ", &instructions);
        }
        let mut part = |kind: &str, key: &str, entries: Vec<Value>| {
            for listed in entries {
                text.push_str(&format!("\n{kind} {}\n", listed[key].as_str().unwrap_or_default()));
                entry(&mut text, &listed, &[key]);
            }
        };
        if can.tools.is_some() {
            part("tool", "name", listed(connection.tools().await));
        }
        if can.prompts.is_some() {
            part("prompt", "name", listed(connection.prompts().await));
        }
        if can.resources.is_some() {
            part("resource", "uri", listed(connection.resources().await));
            part("template", "uriTemplate", listed(connection.resource_templates().await));
        }
        Self(text)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares with a text, without empty lines around it.
    ///
    /// # Panics
    ///
    /// The texts differ; the message has a diff.
    #[track_caller]
    pub fn assert_is(&self, expected: &str) {
        let expected = expected.trim_matches('\n');
        if self.0.trim_matches('\n') != expected {
            panic!("the catalogue is another (- expected, + found):\n{}", diff(expected, &self.0));
        }
    }

    /// Compares with a file. Cargo runs tests in the folder of their package, so the path is relative to that.
    ///
    /// With `PINTLE_BLESS=1` in the environment the file is written instead.
    ///
    /// # Panics
    ///
    /// The file differs, or cannot be read or written.
    #[track_caller]
    pub fn assert_file(&self, path: impl AsRef<Path>) {
        self.compare(path.as_ref(), std::env::var_os(BLESS).is_some_and(|value| value != "0"));
    }

    #[track_caller]
    fn compare(&self, path: &Path, bless: bool) {
        let shown = path.display();
        if bless {
            if let Err(error) = std::fs::write(path, &self.0) {
                panic!("`{shown}` cannot be written: {error}");
            }
            return;
        }
        let expected = match std::fs::read_to_string(path) {
            Ok(expected) => expected.replace("\r\n", "\n"),
            Err(error) => panic!("`{shown}` cannot be read: {error}; write it with `{BLESS}=1 cargo test`"),
        };
        if expected != self.0 {
            panic!(
                "the catalogue is not what `{shown}` says (- the file, + the server); if that is meant, write it \
                 with `{BLESS}=1 cargo test`:\n{}",
                diff(&expected, &self.0)
            );
        }
    }
}

impl fmt::Display for CatalogueSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn listed<T: Serialize>(list: Result<Vec<T>>) -> Vec<Value> {
    let list = list.unwrap_or_else(|error| panic!("a list could not be had: {error}"));
    list.iter().filter_map(|listed| serde_json::to_value(listed).ok()).collect()
}

/// The members of something: the description as the text that it is, the rest as JSON.
fn entry(text: &mut String, listed: &impl Serialize, but: &[&str]) {
    let Ok(Value::Object(members)) = serde_json::to_value(listed) else { return };
    if let Some(description) = members.get("description").and_then(Value::as_str) {
        lines(text, "  | ", description);
    }
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    for (name, value) in members {
        if name != "description" && !but.contains(&name.as_str()) {
            text.push_str(&format!("  {name}: "));
            print(value, 2, text);
            text.push('\n');
        }
    }
}

fn lines(text: &mut String, mark: &str, content: &str) {
    for line in content.lines() {
        text.push_str(format!("{mark}{line}").trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_when_it_is_blessed_and_compared_when_not() {
        let path = std::env::temp_dir().join(format!("pintle-catalogue-{}.txt", std::process::id()));
        let catalogue = CatalogueSnapshot("server demo 1\n".to_owned());
        catalogue.compare(&path, true);
        catalogue.compare(&path, false);
        let other = CatalogueSnapshot("server demo 2\n".to_owned());
        let message = std::panic::catch_unwind(|| other.compare(&path, false)).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        let message = message.downcast::<String>().unwrap();
        assert!(message.contains("- server demo 1\n+ server demo 2\n"), "{message}");
        assert!(message.contains("`PINTLE_BLESS=1 cargo test`"), "{message}");
    }
}

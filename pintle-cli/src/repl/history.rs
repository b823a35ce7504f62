use std::path::PathBuf;

use pintle::types::schema::Tool;
use serde_json::Value;

use super::words::LineWords;
use crate::{
    output::hides,
    storage::{self, read_private, write_private},
};

/// The number of lines that are kept. The oldest are forgotten.
pub(super) const MAX_LINES: usize = 1000;
/// The size of a line that is kept.
const MAX_LINE: usize = 4096;
const MAX_BYTES: u64 = 8 << 20;

/// Parts of the names of arguments whose values are secrets, in lower case without `_` and `-`.
const SECRET_PARTS: [&str; 10] = [
    "apikey",
    "assertion",
    "authorization",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "token",
];

/// The file of lines that were typed. Only its owner can read it.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// `None` if nothing is kept.
    path: Option<PathBuf>,
}

impl History {
    /// Returns the history of the user, or one that keeps nothing.
    pub(super) fn of_user(is_kept: bool) -> Self {
        let directory = is_kept.then(storage::directory).and_then(Result::ok);
        Self { path: directory.map(|directory| directory.join("repl-history")) }
    }

    /// Returns the lines, the newest last. Where they cannot be read, there are none.
    pub(super) fn load(&self) -> Vec<String> {
        let bytes = self.path.as_deref().and_then(|path| read_private(path, MAX_BYTES).ok().flatten());
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        let mut lines: Vec<_> = text.lines().filter(|line| is_kept(line)).map(str::to_owned).collect();
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        lines
    }

    /// Adds a line to those of the file, which another `repl` may have changed.
    pub(super) fn add(&self, line: &str) {
        let Some(path) = &self.path else { return };
        let mut lines = self.load();
        if lines.last().is_some_and(|last| last == line) || !is_kept(line) {
            return;
        }
        lines.push(line.to_owned());
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        // It is only a convenience.
        let _ = write_private(path, (lines.join("\n") + "\n").as_bytes());
    }
}

/// Returns whether a line can be kept and shown again.
fn is_kept(line: &str) -> bool {
    !line.trim().is_empty() && line.len() <= MAX_LINE && !hides(line)
}

/// Returns whether a line may hold a secret: by the name of an argument, or by the schema of the tool that is called.
pub(super) fn has_secret(line: &str, tool: Option<&Tool>) -> bool {
    let is_secret = |name: &str| is_secret_name(name) || tool.is_some_and(|tool| is_password(tool, name));
    LineWords::split(line).words.iter().any(|word| {
        let word = word.text.as_str();
        if let Ok(value @ Value::Object(_)) = serde_json::from_str(word) {
            return has_secret_member(&value, &is_secret);
        }
        let (name, value) = word.split_once('=').unwrap_or((word.trim_start_matches('-'), ""));
        let is_named = word.starts_with('-') || word.contains('=');
        let value = serde_json::from_str(value).unwrap_or_default();
        is_named && is_secret(name.trim_end_matches(':').trim_start_matches('-'))
            || has_secret_member(&value, &is_secret)
    })
}

fn has_secret_member(value: &Value, is_secret: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(name, value)| is_secret(name) || has_secret_member(value, is_secret))
        }
        Value::Array(items) => items.iter().any(|item| has_secret_member(item, is_secret)),
        _ => false,
    }
}

fn is_secret_name(name: &str) -> bool {
    let name: String =
        name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect();
    SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// Returns whether the schema of a tool declares an argument as a password.
fn is_password(tool: &Tool, name: &str) -> bool {
    let Some(Value::Object(properties)) = tool.input_schema.get("properties") else { return false };
    // An option is typed with `-` for `_`.
    let property = properties.iter().find(|(known, _)| *known == name || known.replace('_', "-") == name);
    property.is_some_and(|(_, schema)| schema["format"] == "password" || schema["writeOnly"] == true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> Tool {
        let schema = json!({"properties": {"pin_code": {"format": "password"}, "once": {"writeOnly": true}, "city": {}}});
        Tool::new("x", serde_json::from_value::<pintle::types::JsonObject>(schema).unwrap())
    }

    #[test]
    fn lines_with_secrets_are_recognized() {
        for line in [
            "call x password=hunter2",
            "call x --api-key abc",
            "call x --api-key=abc",
            r#"call x '{"a": [{"clientSecret": "s"}]}'"#,
            r#"call x 'login:={"passwd": "s"}'"#,
            "call x pin_code=1234",
            "call x --pin-code 1234",
            "call x once:=1",
            "call x --answer access_token=1",
            "raw x/y '{\"token\": 1}'",
        ] {
            assert!(has_secret(line, Some(&tool())), "{line}");
        }
        for line in ["call x city=password", "call x pinned=1", "ls tools --grep token", "read password://x"]
        {
            assert!(!has_secret(line, Some(&tool())), "{line}");
        }
    }

    #[test]
    fn the_file_is_bounded_and_private() {
        let folder = std::env::temp_dir().join(format!("pintle-history-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let history = History { path: Some(folder.join("lines")) };
        let lines: Vec<_> = (0..MAX_LINES + 5).map(|number| format!("call x n={number}")).collect();
        write_private(&folder.join("lines"), lines.join("\n").as_bytes()).unwrap();
        history.add("ls");
        history.add("ls");
        history.add("call x a=\u{1b}[2J");
        history.add(&"x".repeat(MAX_LINE + 1));
        let kept = history.load();
        assert_eq!(
            (kept.len(), kept[0].as_str(), kept[MAX_LINES - 1].as_str()),
            (MAX_LINES, "call x n=6", "ls")
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(folder.join("lines")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::remove_dir_all(folder).unwrap();
        assert!(History { path: None }.load().is_empty());
    }
}

use std::path::Path;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use toml::de::DeTable;

use crate::args::near;

/// The current version of the format.
pub(super) const VERSION: u32 = 1;

/// The text of a file, in TOML or YAML.
pub(super) struct FileText<'a> {
    text: &'a str,
    format: Format,
}

enum Format {
    Toml,
    Yaml,
}

#[derive(Deserialize)]
struct VersionedText {
    version: Option<u32>,
}

impl<'a> FileText<'a> {
    pub(super) fn toml(text: &'a str) -> Self {
        Self { text, format: Format::Toml }
    }

    /// Returns the text of a file, whose name tells its format.
    pub(super) fn of(path: &Path, text: &'a str) -> Self {
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        Self { text, format: if is_yaml { Format::Yaml } else { Format::Toml } }
    }

    /// Decodes the text, if it is of a version that this program reads. An error has the line, and what was meant.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, String> {
        // What a later version has is unknown here, and its version is the reason.
        match self.decode_any::<VersionedText>()?.version {
            None | Some(VERSION) => self.decode_any(),
            Some(version) => {
                let message =
                    format!("`version` is {version}, and this program reads {VERSION}: update the program");
                Err(self.fault("version", &message))
            }
        }
    }

    fn decode_any<T: DeserializeOwned>(&self) -> Result<T, String> {
        match self.format {
            Format::Toml => toml::from_str(self.text).map_err(|error| {
                let line = error.span().and_then(|span| self.line(span.start));
                described(line, &meant(error.message().trim()))
            }),
            Format::Yaml => {
                let value = self.yaml()?;
                serde_path_to_error::deserialize(value).map_err(|error| {
                    let path: Vec<_> = error.path().iter().map(ToString::to_string).collect();
                    // An unknown member is not there: what would have it is.
                    let line = (0..=path.len()).rev().find_map(|end| self.line_at(&path[..end]));
                    described(line, &meant(&error.inner().to_string()))
                })
            }
        }
    }

    /// Returns the text with the version, before everything else but comments.
    pub(super) fn with_version(&self) -> String {
        let is_before = |line: &&str| {
            let line = line.trim();
            let start = line.strip_prefix("---").map(str::trim_start);
            line.starts_with(['#', '%'])
                || start.unwrap_or(line).is_empty()
                || start.is_some_and(|rest| rest.starts_with('#'))
        };
        let marked = self.text.len() - self.text.trim_start_matches('\u{feff}').len();
        let lines = self.text[marked..].split_inclusive('\n');
        let at: usize = marked + lines.take_while(is_before).map(str::len).sum::<usize>();
        let (before, after) = self.text.split_at(at);
        match self.format {
            Format::Toml => format!("{before}version = {VERSION}\n{after}"),
            Format::Yaml => {
                let members = after.strip_prefix("--- ").unwrap_or(after).trim_start();
                let (start, flow) = after.split_at(after.len() - members.len());
                match flow.strip_prefix('{') {
                    Some(flow) => format!("{before}{start}{{ version: {VERSION}, {}", flow.trim_start()),
                    None => format!("{before}version: {VERSION}\n{after}"),
                }
            }
        }
    }

    fn yaml(&self) -> Result<Value, String> {
        match pintle_yaml::parse(self.text, &pintle_yaml::Limits::default())
            .map_err(|error| error.to_string())?
        {
            // A file without anything has no members.
            Value::Null => Ok(Value::Object(serde_json::Map::new())),
            value => Ok(value),
        }
    }

    /// Returns a message about a table, or one in it (`targets.NAME`), with its line.
    pub(super) fn fault(&self, table: &str, message: &str) -> String {
        described(self.line_of(table), message)
    }

    /// Returns the names in a table, in the order of the text.
    pub(super) fn order<'b>(&self, table: &str, names: impl Iterator<Item = &'b String>) -> Vec<String> {
        let mut names: Vec<_> = names.cloned().collect();
        match self.format {
            Format::Toml => {
                let tables = DeTable::parse(self.text).ok();
                names.sort_by_key(|name| position_of(tables.as_ref()?.get_ref(), table, Some(name)));
            }
            Format::Yaml => {
                let value = self.yaml().unwrap_or_default();
                let known: Vec<_> = value
                    .get(table)
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(|table| table.keys())
                    .collect();
                names.sort_by_key(|name| known.iter().position(|known| *known == name));
            }
        }
        names
    }

    fn line_of(&self, table: &str) -> Option<usize> {
        let (outer, inner) =
            table.split_once('.').map_or((table, None), |(outer, inner)| (outer, Some(inner)));
        match self.format {
            Format::Toml => {
                let tables = DeTable::parse(self.text).ok()?;
                self.line(position_of(tables.get_ref(), outer, inner)?)
            }
            Format::Yaml => {
                let path: Vec<_> = [outer].into_iter().chain(inner).map(str::to_owned).collect();
                self.line_at(&path)
            }
        }
    }

    /// Returns the line of a part of YAML.
    fn line_at(&self, path: &[String]) -> Option<usize> {
        let pointer: String =
            path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
        pintle_yaml::locate(self.text, &pointer).map(|position| position.line)
    }

    fn line(&self, at: usize) -> Option<usize> {
        self.text.get(..at).map(|before| before.matches('\n').count() + 1)
    }
}

fn described(line: Option<usize>, message: &str) -> String {
    match line {
        Some(line) => format!("line {line}: {message}"),
        None => message.to_owned(),
    }
}

/// Returns the message of a parser. If it names an unknown word, that is followed by the known one that is most like it.
///
/// The words are those of serde: errors of `toml` have a message and a place, and nothing that tells what was unknown or what is known.
/// If they change, the message is shown as it is, and the test of what was meant fails.
fn meant(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    let meant = words.next().and_then(|word| near(word, words)).filter(|_| message.starts_with("unknown"));
    match (meant, message.split_once(',')) {
        (Some(meant), Some((beginning, _))) => format!("{beginning}; did you mean `{meant}`?"),
        _ => message.to_owned(),
    }
}

/// Returns where a table, or one in it, is named first, whether it has a heading or is written in a line.
fn position_of(tables: &DeTable<'_>, outer: &str, inner: Option<&str>) -> Option<usize> {
    let found = tables.get_key_value(outer)?;
    let (key, value) = match inner {
        Some(inner) => found.1.get_ref().as_table()?.get_key_value(inner)?,
        None => found,
    };
    // A table in it may come before its own heading.
    let members = value.get_ref().as_table().into_iter().flat_map(|table| table.keys());
    members.chain([key]).map(|key| key.span().start).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_its_version_where_its_members_begin() {
        for (name, text, expected) in [
            ("a.toml", "\u{feff}# A.\na = 1\n", "\u{feff}# A.\nversion = 1\na = 1\n"),
            ("a.yaml", "\u{feff}a: 1\n", "\u{feff}version: 1\na: 1\n"),
            ("a.yaml", "\u{feff}--- # A.\r\na: 1\n", "\u{feff}--- # A.\r\nversion: 1\na: 1\n"),
            ("a.yaml", "# A.\n{a: 1}\n", "# A.\n{ version: 1, a: 1}\n"),
            ("a.yaml", "--- {\n  a: 1 }\n", "--- { version: 1, a: 1 }\n"),
            ("a.yaml", "", "version: 1\n"),
        ] {
            let text = FileText::of(Path::new(name), text).with_version();
            assert_eq!(text, expected);
            let read: Value = FileText::of(Path::new(name), &text).decode_any().unwrap();
            assert_eq!(read["version"], 1, "{text}");
        }
    }
}

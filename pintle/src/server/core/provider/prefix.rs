use std::{borrow::Cow, sync::Arc};

use pintle_types::{JsonObject, RawObject};
use serde_json::{Value, value::to_raw_value};

use crate::server::{ListKind, Target};

/// How the names of a mounted provider are written: `git_status` for the tool `status` of the namespace `git`.
///
/// Tools and prompts have the prefix. URIs of resources and URI templates are kept, unless [`uris`](Self::uris) is set.
///
/// ```
/// use pintle::{Server, server::{Prefix, tool}};
///
/// let git = || Server::new("git", "1.0.0").tool(tool("status", || async { "clean" }));
/// let server = Server::new("desk", "1.0.0")
///     // `git_status`
///     .mount("git", git())
///     // `old.status`
///     .mount(Prefix::new("old").separator("."), git())
///     // `status`
///     .mount(Prefix::none(), git());
/// # server.check().unwrap();
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Prefix {
    namespace: Arc<str>,
    /// The namespace with its separator.
    text: Arc<str>,
    uris: bool,
}

impl Prefix {
    /// Creates the prefix of a namespace. The separator is `_`.
    pub fn new(namespace: impl AsRef<str>) -> Self {
        let namespace = namespace.as_ref();
        Self { namespace: namespace.into(), text: format!("{namespace}_").into(), uris: false }
    }

    /// Creates the prefix that changes no names.
    pub fn none() -> Self {
        Self { namespace: "".into(), text: "".into(), uris: false }
    }

    /// Sets the separator between the namespace and a name.
    #[must_use]
    pub fn separator(self, separator: &str) -> Self {
        let text = format!("{}{separator}", self.namespace).into();
        Self { text, ..self }
    }

    /// Writes URIs of resources with the namespace too, after `scheme://` or `scheme:`: `note://git/1` for `note://1`. They are changed in
    /// lists, requests, notifications and the results of reads, where results of tools and prompts link or embed resources, and where
    /// a tool names its app.
    #[must_use]
    pub fn uris(self) -> Self {
        Self { uris: true, ..self }
    }

    /// Returns the namespace. [`none`](Self::none) has an empty one.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns what is wrong with the prefix.
    pub(crate) fn fault(&self) -> Option<String> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if self.text.chars().all(is_valid) && (self.text.is_empty() || !self.namespace.is_empty()) {
            return None;
        }
        Some(format!(
            "`{}` is not a prefix: use letters, digits, `_`, `-` and `.`, or `Prefix::none()`",
            self.text
        ))
    }

    /// Returns whether the name of a target shows that it is of this prefix.
    pub(crate) fn marks(&self, target: &Target<'_>) -> bool {
        match target {
            Target::Tool(_) | Target::Prompt(_) => !self.text.is_empty(),
            _ => self.changes_uris(),
        }
    }

    /// Returns whether URIs have the namespace.
    pub(crate) fn changes_uris(&self) -> bool {
        self.uris && !self.namespace.is_empty()
    }

    /// Returns the name, URI or URI template with the prefix.
    pub(crate) fn add(&self, list: ListKind, key: &str) -> String {
        match list {
            ListKind::Tools | ListKind::Prompts => format!("{}{key}", self.text),
            ListKind::Resources | ListKind::Templates if self.changes_uris() => {
                let (scheme, rest) = split(key);
                format!("{scheme}{}/{rest}", self.namespace)
            }
            ListKind::Resources | ListKind::Templates => key.to_owned(),
        }
    }

    /// Writes the URIs of contents of resources, of links to them and of embedded ones with the namespace, in a list or one by one.
    pub(crate) fn add_to_content(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.add_to_content(item)),
            Value::Object(item) => {
                if let Some(Value::String(uri)) = item.get_mut("uri") {
                    *uri = self.add(ListKind::Resources, uri);
                }
                for member in ["resource", "content"] {
                    if let Some(inner) = item.get_mut(member) {
                        self.add_to_content(inner);
                    }
                }
            }
            _ => {}
        }
    }

    /// Writes the URI of the app of a tool with the namespace.
    pub(crate) fn add_to_app(&self, tool: &mut RawObject) -> serde_json::Result<()> {
        let Ok(Some(mut meta)) = tool.decode_member::<JsonObject>("_meta") else { return Ok(()) };
        let added = |uri: Option<&mut Value>| match uri {
            Some(Value::String(uri)) => {
                *uri = self.add(ListKind::Resources, uri);
                true
            }
            _ => false,
        };
        // The names are those of the extension of apps, and of its older hosts.
        let flat = added(meta.get_mut("ui/resourceUri"));
        let nested = added(meta.get_mut("ui").and_then(|app| app.get_mut("resourceUri")));
        if flat || nested {
            *tool = tool.with("_meta", &to_raw_value(&meta)?);
        }
        Ok(())
    }

    /// Returns the name, URI or URI template without the prefix; `None` if it does not have it.
    pub(crate) fn strip<'a>(&self, list: ListKind, key: &'a str) -> Option<Cow<'a, str>> {
        match list {
            ListKind::Tools | ListKind::Prompts => key.strip_prefix(&*self.text).map(Cow::Borrowed),
            ListKind::Resources | ListKind::Templates if self.changes_uris() => {
                let (scheme, rest) = split(key);
                let rest = rest.strip_prefix(&*self.namespace)?.strip_prefix('/')?;
                Some(format!("{scheme}{rest}").into())
            }
            ListKind::Resources | ListKind::Templates => Some(key.into()),
        }
    }
}

/// Divides a URI after `scheme://`, or after `scheme:`.
fn split(uri: &str) -> (&str, &str) {
    let Some(colon) = uri.find(':') else { return ("", uri) };
    let end = if uri[colon..].starts_with("://") { colon + 3 } else { colon + 1 };
    uri.split_at(end)
}

impl From<&str> for Prefix {
    fn from(namespace: &str) -> Self {
        Self::new(namespace)
    }
}

impl From<String> for Prefix {
    fn from(namespace: String) -> Self {
        Self::new(namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_uris_are_written_with_the_prefix_and_back() {
        let plain = Prefix::new("git");
        assert_eq!(plain.add(ListKind::Tools, "status"), "git_status");
        assert_eq!(plain.strip(ListKind::Tools, "git_status").as_deref(), Some("status"));
        assert_eq!(plain.strip(ListKind::Prompts, "status"), None);
        assert_eq!(plain.add(ListKind::Resources, "note://1"), "note://1");
        let uris = Prefix::new("git").separator(".").uris();
        assert_eq!(uris.add(ListKind::Prompts, "log"), "git.log");
        for (uri, with) in [
            ("note://1", "note://git/1"),
            ("file:///readme", "file://git//readme"),
            ("mail:1", "mail:git/1"),
            ("note://{id}/x:y", "note://git/{id}/x:y"),
            ("plain", "git/plain"),
            ("", "git/"),
        ] {
            assert_eq!(uris.add(ListKind::Resources, uri), with);
            assert_eq!(uris.strip(ListKind::Templates, with).as_deref(), Some(uri));
        }
        assert_eq!(uris.strip(ListKind::Resources, "note://1"), None);
        assert_eq!(uris.strip(ListKind::Resources, "note://gitt/1"), None);
        assert_eq!(Prefix::none().uris().add(ListKind::Resources, "note://1"), "note://1");
    }

    #[test]
    fn a_prefix_that_no_name_may_have_is_a_fault() {
        assert_eq!(Prefix::new("git").fault(), None);
        assert_eq!(Prefix::none().fault(), None);
        assert!(Prefix::new("").fault().is_some());
        assert!(Prefix::new("a b").fault().is_some());
        assert!(Prefix::new("a").separator("/").fault().is_some());
    }
}

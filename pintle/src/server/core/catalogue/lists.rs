use std::{borrow::Cow, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_types::{
    RpcError, method, plain_error,
    schema::{ListParams, ServerCapabilities},
};

use super::options::CatalogueRoute;
use crate::server::{Cx, Entry, Principal, Target};

/// A list that a server has.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

impl ListKind {
    /// All lists.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Returns the method that requests it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST,
            Self::Prompts => method::PROMPTS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::Templates => method::RESOURCES_TEMPLATES_LIST,
        }
    }

    /// Returns the list that a method requests.
    pub fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            method::TOOLS_LIST => Self::Tools,
            method::PROMPTS_LIST => Self::Prompts,
            method::RESOURCES_LIST => Self::Resources,
            method::RESOURCES_TEMPLATES_LIST => Self::Templates,
            _ => return None,
        })
    }

    /// Returns whether a server with these capabilities has it.
    pub fn is_offered(self, capabilities: &ServerCapabilities) -> bool {
        match self {
            Self::Tools => capabilities.tools.is_some(),
            Self::Prompts => capabilities.prompts.is_some(),
            Self::Resources | Self::Templates => capabilities.resources.is_some(),
        }
    }

    /// The first byte of its cursors that continue in a provider.
    pub(crate) fn provider_letter(self) -> u8 {
        match self {
            Self::Tools => b'T',
            Self::Prompts => b'P',
            Self::Resources => b'R',
            Self::Templates => b'M',
        }
    }

    /// Returns the list that an entry is in; `None` for a method.
    pub(crate) fn of_entry(entry: Entry<'_>) -> Option<Self> {
        Some(match entry {
            Entry::Tool(_) => Self::Tools,
            Entry::Prompt(_) => Self::Prompts,
            Entry::Resource(_) => Self::Resources,
            Entry::Template(_) => Self::Templates,
            Entry::Method(_) => return None,
        })
    }

    /// Returns an entry of the list as a target.
    pub(crate) fn target(self, name: Cow<'_, str>) -> Target<'_> {
        match self {
            Self::Tools => Target::Tool(name),
            Self::Prompts => Target::Prompt(name),
            Self::Resources => Target::Resource(name),
            Self::Templates => Target::Template(name),
        }
    }

    /// Returns the list that a target would be in.
    pub(crate) fn of(target: &Target<'_>) -> Option<Self> {
        Some(match target {
            Target::Tool(_) => Self::Tools,
            Target::Prompt(_) => Self::Prompts,
            Target::Resource(_) => Self::Resources,
            Target::Template(_) => Self::Templates,
            Target::Task(_) | Target::Method(_) => return None,
        })
    }

    /// Returns the lists that a target may be in: what is named as a template may be a resource.
    pub fn all_of(target: &Target<'_>) -> &'static [Self] {
        match target {
            Target::Tool(_) => &[Self::Tools],
            Target::Prompt(_) => &[Self::Prompts],
            Target::Resource(_) | Target::Template(_) => &[Self::Resources, Self::Templates],
            Target::Task(_) | Target::Method(_) => &[],
        }
    }

    /// Returns the member of the result that has the entries.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Returns the member of an entry that identifies it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The first bytes of its cursors that continue in what the server has itself, by the sections of that.
    pub(crate) fn own_letters(self) -> &'static [u8] {
        match self {
            Self::Tools => b"xyt",
            Self::Prompts => b"p",
            Self::Resources => b"r",
            Self::Templates => b"m",
        }
    }
}

/// Returns whether the caller sees this route. A route that it does not see does not exist for it.
pub(crate) fn sees<R: CatalogueRoute>(cx: &Cx, route: &Arc<R>) -> bool {
    route.options().required.shows(cx.left()) && is_shown(cx, route.entry(), None)
}

/// Returns whether the gates of the server show this entry, of a provider or of the server itself, to the caller.
pub(crate) fn is_shown(cx: &Cx, entry: Entry<'_>, backend: Option<&str>) -> bool {
    cx.snapshot().gates.shows(&cx.scope(), entry, backend, None)
}

impl Cx {
    /// Seals a position in a list as the cursor of its next page, which nobody can read, change, or use in the name of another caller. All
    /// processes with the same [keys](crate::server::StateKeys) open it.
    pub fn seal_cursor(&self, position: &[u8]) -> String {
        // A cursor of a mounted server is a part of that of the outermost one.
        if self.is_mounted() {
            return URL_SAFE_NO_PAD.encode(position);
        }
        let sealed = self.snapshot().settings.keys.seal_name(&self.cursor_bound(), position);
        URL_SAFE_NO_PAD.encode(sealed.unwrap_or_default())
    }

    /// Opens a cursor that was [sealed](Self::seal_cursor) for the caller; `None` if it was not.
    pub fn open_cursor(&self, cursor: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        match self.is_mounted() {
            true => Some(bytes),
            false => self.snapshot().settings.keys.open_name(&self.cursor_bound(), &bytes),
        }
    }

    fn cursor_bound(&self) -> String {
        match self.identity() {
            Principal::Local => "cursor of local".to_owned(),
            Principal::Named(name) => format!("cursor of name:{name}"),
            Principal::Anonymous => "cursor of anonymous".to_owned(),
        }
    }
}

/// Returns the cursor of a request, not decoded.
pub(crate) fn cursor_text(cx: &Cx) -> Result<Option<String>, RpcError> {
    let params: ListParams = cx
        .params()
        .decode()
        .map_err(|error| RpcError::invalid_params(format!("`{}`: {}", cx.method(), plain_error(&error))))?;
    Ok(params.cursor)
}

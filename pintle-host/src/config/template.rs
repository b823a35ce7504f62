use std::fmt;

use super::Variables;

/// The maximum size of a text after its variables were replaced.
const MAX_BYTES: usize = 1 << 20;

/// A text of a configuration file with variables in it, such as `Bearer ${TOKEN}`.
///
/// | written | replaced by |
/// |---|---|
/// | `${NAME}`, `${env:NAME}` | the environment variable; an error if it is not set |
/// | `${NAME:-default}` | the environment variable, or `default` if it is not set |
/// | `${input:id}` | an input that the user was asked for: [`Variables::input`] |
/// | `${workspaceFolder}`, `${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}`, `${/}` | what they are in VS Code and Cursor |
/// | `{env:NAME}` | the environment variable, in OpenCode's files |
///
/// Everything else stays as it is, `$NAME` and `${NAME%.txt}` included. Files of Codex and Zed have no variables.
///
/// `Debug` does not print the text: it may contain a secret.
#[derive(Clone, Eq, PartialEq)]
pub struct Template {
    text: String,
    syntax: Syntax,
}

/// How variables are written in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Syntax {
    /// There are none.
    Literal,
    /// `${NAME}`
    Dollar,
    /// `{env:NAME}`
    Braces,
}

/// A variable that has no value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ExpandError {
    Variable(String),
    Input(String),
    Folder(&'static str),
    TooLong,
    Unsupported(&'static str),
}

/// A part of a template.
enum TemplatePart<'a> {
    Text(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
    Input(&'a str),
    Folder(Folder),
    File,
}

#[derive(Clone, Copy)]
enum Folder {
    Workspace,
    WorkspaceName,
    Home,
    Separator,
}

impl Template {
    pub(super) fn new(text: impl Into<String>, syntax: Syntax) -> Self {
        Self { text: text.into(), syntax }
    }

    /// The text as it is in the file. It may contain a secret.
    pub fn as_written(&self) -> &str {
        &self.text
    }

    /// The environment variables that have to be set for this text.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| match part {
            TemplatePart::Variable { name, default: None } => Some(name),
            _ => None,
        })
    }

    /// The inputs that the user has to be asked for.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| match part {
            TemplatePart::Input(id) => Some(id),
            _ => None,
        })
    }

    pub(super) fn expand(&self, variables: &Variables) -> Result<String, ExpandError> {
        let mut expanded = String::new();
        for part in self.parts() {
            match part {
                TemplatePart::Text(text) => expanded.push_str(text),
                TemplatePart::Variable { name, default } => match (variables.get(name), default) {
                    (Some(value), _) => expanded.push_str(&value),
                    (None, Some(default)) => expanded.push_str(default),
                    (None, None) => return Err(ExpandError::Variable(name.to_owned())),
                },
                TemplatePart::Input(id) => match variables.given(id) {
                    Some(value) => expanded.push_str(value),
                    None => return Err(ExpandError::Input(id.to_owned())),
                },
                TemplatePart::Folder(folder) => expanded.push_str(&folder.path(variables)?),
                TemplatePart::File => return Err(ExpandError::Unsupported("`{file:..}`")),
            }
            if expanded.len() > MAX_BYTES {
                return Err(ExpandError::TooLong);
            }
        }
        Ok(expanded)
    }

    fn parts(&self) -> impl Iterator<Item = TemplatePart<'_>> {
        let mut rest = self.text.as_str();
        let (open, read): (&str, fn(&str) -> Option<TemplatePart<'_>>) = match self.syntax {
            Syntax::Literal => ("", |_| None),
            Syntax::Dollar => ("${", dollar),
            Syntax::Braces => ("{", braces),
        };
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let begin = if open.is_empty() { None } else { rest.find(open) };
            let Some(begin) = begin else { return Some(TemplatePart::Text(std::mem::take(&mut rest))) };
            if begin > 0 {
                let (text, after) = rest.split_at(begin);
                rest = after;
                return Some(TemplatePart::Text(text));
            }
            let inside = &rest[open.len()..];
            let part = inside.find('}').and_then(|end| Some((read(&inside[..end])?, &inside[end + 1..])));
            let (part, after) = part.unwrap_or((TemplatePart::Text(open), inside));
            rest = after;
            Some(part)
        })
    }
}

/// The part between `${` and `}`, if it is a variable.
fn dollar(inside: &str) -> Option<TemplatePart<'_>> {
    let folder = match inside {
        "workspaceFolder" => Some(Folder::Workspace),
        "workspaceFolderBasename" => Some(Folder::WorkspaceName),
        "userHome" => Some(Folder::Home),
        "pathSeparator" | "/" => Some(Folder::Separator),
        _ => None,
    };
    if let Some(folder) = folder {
        return Some(TemplatePart::Folder(folder));
    }
    if let Some(id) = inside.strip_prefix("input:") {
        return Some(TemplatePart::Input(id));
    }
    let inside = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    is_variable(name).then_some(TemplatePart::Variable { name, default })
}

/// The part between `{` and `}`, if it is a variable.
fn braces(inside: &str) -> Option<TemplatePart<'_>> {
    match inside.split_once(':')? {
        ("env", name) if is_variable(name) => Some(TemplatePart::Variable { name, default: None }),
        ("file", _) => Some(TemplatePart::File),
        _ => None,
    }
}

/// Whether this can be the name of an environment variable. Windows has some with parentheses.
pub(super) fn is_variable(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '(' | ')');
    !name.is_empty() && name.chars().all(allowed) && !name.starts_with(|c: char| c.is_ascii_digit())
}

impl Folder {
    fn path(self, variables: &Variables) -> Result<String, ExpandError> {
        let workspace = || variables.workspace_folder().ok_or(ExpandError::Folder("workspaceFolder"));
        Ok(match self {
            Self::Separator => std::path::MAIN_SEPARATOR_STR.to_owned(),
            Self::Home => {
                let home = variables.get("HOME").or_else(|| variables.get("USERPROFILE"));
                home.ok_or(ExpandError::Variable("HOME".to_owned()))?
            }
            Self::Workspace => workspace()?.to_string_lossy().into_owned(),
            Self::WorkspaceName => {
                workspace()?.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
        })
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, syntax: Syntax) -> Result<String, ExpandError> {
        let variables = Variables::none()
            .set("TOKEN", "t0k")
            .set("EMPTY", "")
            .set("HOME", "/ada")
            .input("key", "k3y")
            .workspace("/srv/shop");
        Template::new(text, syntax).expand(&variables)
    }

    #[test]
    fn variables_of_every_host() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("Bearer ${TOKEN}", "Bearer t0k"),
            ("${TOKEN}${TOKEN}", "t0kt0k"),
            ("${env:TOKEN}!", "t0k!"),
            ("${NONE:-https://example.com}/mcp", "https://example.com/mcp"),
            ("${NONE:-}", ""),
            ("${TOKEN:-x}", "t0k"),
            // Set and empty is set.
            ("${EMPTY:-x}", ""),
            ("${input:key}", "k3y"),
            ("${workspaceFolder}/a", "/srv/shop/a"),
            ("${workspaceFolderBasename}", "shop"),
            ("${userHome}", "/ada"),
            // These are not variables.
            (
                "$TOKEN ${ ${} ${f%.txt} ${a b} {env:TOKEN} ${1}",
                "$TOKEN ${ ${} ${f%.txt} ${a b} {env:TOKEN} ${1}",
            ),
            ("ü${TOKEN}ü", "üt0kü"),
        ] {
            assert_eq!(expand(text, Syntax::Dollar).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(expand("{env:TOKEN} ${TOKEN} {a}", Syntax::Braces).as_deref(), Ok("t0k ${TOKEN} {a}"));
        assert_eq!(expand("${TOKEN}", Syntax::Literal).as_deref(), Ok("${TOKEN}"));
    }

    #[test]
    fn a_variable_without_a_value_is_an_error() {
        for (text, expected) in [
            ("${NONE}", ExpandError::Variable("NONE".into())),
            ("a ${env:NONE} b", ExpandError::Variable("NONE".into())),
            ("${input:other}", ExpandError::Input("other".into())),
        ] {
            assert_eq!(expand(text, Syntax::Dollar), Err(expected), "{text}");
        }
        assert_eq!(expand("{env:NONE}", Syntax::Braces), Err(ExpandError::Variable("NONE".into())));
        assert_eq!(expand("{file:~/.key}", Syntax::Braces), Err(ExpandError::Unsupported("`{file:..}`")));
        let folder = Template::new("${workspaceFolder}", Syntax::Dollar).expand(&Variables::none());
        assert_eq!(folder, Err(ExpandError::Folder("workspaceFolder")));
    }

    #[test]
    fn what_a_repeated_variable_expands_to_is_bounded() {
        let variables = Variables::none().set("X", "x".repeat(4096));
        let text = Template::new("${X}".repeat(1000), Syntax::Dollar);
        assert_eq!(text.expand(&variables), Err(ExpandError::TooLong));
    }

    #[test]
    fn what_has_to_be_given_is_known_beforehand() {
        let text = Template::new("${A} ${B:-b} ${env:C} ${input:d} ${userHome}", Syntax::Dollar);
        assert_eq!(text.required().collect::<Vec<_>>(), ["A", "C"]);
        assert_eq!(text.inputs().collect::<Vec<_>>(), ["d"]);
        assert_eq!(format!("{text:?}"), "..");
    }
}

use std::{collections::HashSet, fs};

use pintle_host::config::{
    ConfigEdit, ConfigError, ConfigErrorKind, EditPreview, EditedFile, Host, Location, Scope, locations,
};
use serde_json::{Value, json};

use super::diff;
use crate::{
    args::{near, quoted},
    failure::Failure,
    output::{Output, Tone},
    targets::directories,
};

/// Reads the name of a host.
pub(super) fn host(typed: &str) -> Result<Host, String> {
    let id = typed.to_ascii_lowercase();
    // As people also call them.
    let id = match id.as_str() {
        "claude" => "claude-code",
        "code" | "vs-code" => "vscode",
        "gemini" => "gemini-cli",
        "copilot" => "copilot-cli",
        "roo" => "roo-code",
        "lmstudio" => "lm-studio",
        id => id,
    };
    Host::from_id(id).ok_or_else(|| {
        let ids: Vec<_> = Host::all().map(Host::id).collect();
        match near(id, ids.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are {}", ids.join(", ")),
        }
    })
}

/// Returns the file of each host: of the user, or of the project in this directory.
pub(super) fn files(hosts: &[Host], project: bool) -> Result<Vec<Location>, Failure> {
    let scope = if project { Scope::Project } else { Scope::User };
    let mut seen = HashSet::new();
    let hosts = hosts.iter().filter(|host| seen.insert(**host));
    let file = |host: &Host| {
        let mut all = locations(&directories());
        all.retain(|location| location.host == *host && location.scope == scope);
        // Of several, the one that exists.
        let at = all.iter().position(|location| location.path.exists()).unwrap_or_default();
        match all.into_iter().nth(at) {
            Some(location) => Ok(location),
            None => {
                let (whose, other) = if project { ("a project", "without") } else { ("the user", "with") };
                let message = format!("{host} has no file of {whose}: try it {other} `--project`");
                Err(Failure::usage(message, "pintle add --help"))
            }
        }
    };
    hosts.map(file).collect()
}

/// Makes the edits, or shows them. If one of them cannot be made, none is.
pub(super) fn apply(edits: &[(Location, ConfigEdit)], dry_run: bool, output: &Output) -> Result<(), Failure> {
    let mut previews = Vec::new();
    for (location, edit) in edits {
        previews.push(edit.preview().map_err(|error| explain(&error, location))?);
    }
    if dry_run {
        let rows = edits.iter().zip(&previews).map(|((location, _), preview)| {
            let EditPreview { before, after, .. } = preview;
            json!({ "host": location.host.id(), "file": location.path.to_string_lossy(), "before": before, "after": after })
        });
        return output.result(&json!({ "changes": rows.collect::<Vec<_>>() }), |text| {
            for ((location, _), preview) in edits.iter().zip(&previews) {
                text.tone(Tone::Title, location.host).add("  ");
                text.tone(Tone::Faint, location.path.display()).end();
                diff::print(preview.before.as_deref().unwrap_or_default(), &preview.after, text);
            }
        });
    }
    let mut done = Vec::new();
    for (location, edit) in edits {
        done.push((location, edit.apply().map_err(|error| explain(&error, location))?));
    }
    let rows: Vec<Value> = done.iter().map(|(location, edited)| to_json(location, edited)).collect();
    output.result(&json!({ "changed": rows }), |text| {
        for (location, edited) in &done {
            text.tone(Tone::Title, location.host).add("  ").add(edited.path.display());
            if let Some(backup) = &edited.backup {
                let name = backup.file_name().unwrap_or_default();
                text.tone(Tone::Faint, format_args!("  (before: {})", name.display()));
            }
            text.end();
        }
    })
}

fn to_json(location: &Location, edited: &EditedFile) -> Value {
    let backup = edited.backup.as_ref().map(|backup| backup.to_string_lossy());
    json!({ "host": location.host.id(), "file": edited.path.to_string_lossy(), "backup": backup })
}

fn explain(error: &ConfigError, location: &Location) -> Failure {
    let name = quoted(error.server.as_deref().unwrap_or_default());
    let host = location.host.id();
    let next = match error.kind {
        ConfigErrorKind::AlreadyConfigured => format!("pintle add {name} … --to {host} --replace"),
        ConfigErrorKind::NotConfigured => "pintle servers".to_owned(),
        _ if fs::metadata(&location.path).is_ok() => {
            format!("cat {}", quoted(&location.path.to_string_lossy()))
        }
        _ => "pintle add --help".to_owned(),
    };
    Failure::usage(error.to_string(), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_names_that_people_type() {
        assert_eq!(host("Cursor"), Ok(Host::Cursor));
        assert_eq!(host("claude"), Ok(Host::ClaudeCode));
        assert_eq!(host("vs-code"), Ok(Host::VsCode));
        assert_eq!(host("cusror"), Err("did you mean `cursor`?".to_owned()));
        assert!(host("emacs").unwrap_err().contains("claude-code, claude-desktop"));
    }
}

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use pintle_host::config::{EntryTransport, RemoteEntry, ServerEntry, StdioEntry, Template};
use serde_json::json;

use super::write_new;
use crate::{
    failure::Failure,
    output::{Output, counted},
    targets::{Inventory, ListedServer, directories, inventory, secrets},
};

/// Writes a file with the servers that hosts on this machine have configured, or prints it.
pub(in crate::verbs::gateway) fn write(path: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let Inventory { servers, unread } = inventory(&directories());
    for error in &unread {
        output.note(error);
    }
    let generated = GeneratedFile::of(&servers);
    if generated.targets == 0 {
        let message = "no host on this machine has a server that could be a target";
        return Err(Failure::usage(message, "pintle servers"));
    }
    write_new(path, &generated.text, "pintle gateway --from-hosts")?;
    for skipped in &generated.skipped {
        output.note(skipped);
    }
    let Some(path) = path else {
        return output.result(&json!({ "file": generated.text }), |text| {
            text.block(generated.text.trim_end());
        });
    };
    let shown = path.display();
    let targets = generated.targets;
    output.result(&json!({ "path": path, "targets": targets }), |text| {
        let targets = counted(targets, "target", "targets");
        text.line(format!("{shown}: {targets}; check it with `pintle gateway {shown} --check`"));
    })
}

/// The text of a file, made of configured servers. It has no values of variables and headers, which may be secrets.
#[derive(Debug, Default)]
struct GeneratedFile {
    text: String,
    targets: usize,
    /// The servers that are not in it, and why.
    skipped: Vec<String>,
}

impl GeneratedFile {
    fn of(servers: &[ListedServer]) -> Self {
        let mut file = Self {
            text: "# Made by `pintle gateway --from-hosts`. Secrets are read from the environment.\n"
                .to_owned(),
            ..Self::default()
        };
        let mut names = BTreeSet::new();
        for ListedServer { host, server, .. } in servers {
            let entry = &server.entry;
            let skip = match &server.untrusted {
                _ if !entry.enabled => Some("it is disabled"),
                Some(untrusted) if !untrusted.is_approved() => {
                    Some("its file is not approved; see `pintle approve`")
                }
                _ => None,
            };
            if let Some(reason) = skip {
                file.skipped.push(format!("`{}` of {host} is left out: {reason}", entry.name));
                continue;
            }
            let name = target_name(&entry.name);
            if !names.insert(name.clone()) {
                file.skipped
                    .push(format!("`{}` of {host} is left out: there is another `{name}`", entry.name));
                continue;
            }
            let _ = write!(file.text, "\n# {host}\n[targets.{name}]\n{}", target(entry, &name));
            file.targets += 1;
        }
        file
    }
}

/// Returns the name of a target for that of a server.
fn target_name(name: &str) -> String {
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(32).collect();
    match name.trim_matches('-') {
        "" => "server".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the members of a target.
fn target(entry: &ServerEntry, name: &str) -> String {
    let members = match &entry.transport {
        EntryTransport::Stdio(stdio) => of_program(stdio),
        EntryTransport::Remote(remote) => of_url(remote, name),
        _ => None,
    };
    // Where a secret is a part of the words or the URL, the host's file keeps it.
    let mut members = members.unwrap_or_else(|| format!("server = {}\n", quoted(&entry.name)));
    let patterns = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    if let Some(allowed) = &entry.tools.allow {
        let _ = writeln!(members, "only = [{}]", patterns(allowed));
    }
    if !entry.tools.deny.is_empty() {
        let _ = writeln!(members, "hide = [{}]", patterns(&entry.tools.deny));
    }
    members
}

fn of_program(stdio: &StdioEntry) -> Option<String> {
    if stdio.env_file.is_some() {
        return None;
    }
    let mut words = vec![plain(&stdio.command)?];
    for word in &stdio.args {
        words.push(plain(word)?);
    }
    if secrets::in_words(words.iter().skip(1).copied()).is_some() {
        return None;
    }
    let words: Vec<_> = words.into_iter().map(quoted).collect();
    let mut text = format!("command = [{}]\n", words.join(", "));
    if let Some(cwd) = &stdio.cwd {
        let _ = writeln!(text, "cwd = {}", quoted(plain(cwd)?));
    }
    let set = stdio.env.iter().map(|(name, value)| (name, variable_of(value).unwrap_or(name)));
    let variables = set.chain(stdio.inherit_env.iter().map(|name| (name, name.as_str())));
    let variables: Vec<_> = variables.map(|(name, from)| reference(name, from)).collect();
    if !variables.is_empty() {
        let _ = writeln!(text, "env = {{ {} }}", variables.join(", "));
    }
    Some(text)
}

fn of_url(remote: &RemoteEntry, name: &str) -> Option<String> {
    let url = plain(&remote.url)?;
    if url.contains(['?', '@', '#']) || secrets::in_url(url).is_some() {
        return None;
    }
    let mut text = format!("url = {}\n", quoted(url));
    let headers: Vec<_> = remote
        .headers
        .iter()
        .map(|(header, value)| {
            let made: String = format!("{name}_{header}").to_ascii_uppercase().replace('-', "_");
            let token = value.as_written().strip_prefix("Bearer ");
            match token {
                Some(token) => {
                    let from = whole_variable(token).unwrap_or(&made);
                    format!("{} = {{ bearer_env = {} }}", quoted(header), quoted(from))
                }
                None => reference(header, variable_of(value).unwrap_or(&made)),
            }
        })
        .collect();
    if !headers.is_empty() {
        let _ = writeln!(text, "headers = {{ {} }}", headers.join(", "));
    }
    Some(text)
}

fn reference(name: &str, variable: &str) -> String {
    format!("{} = {{ env = {} }}", quoted(name), quoted(variable))
}

/// Returns a text that has no variables.
fn plain(template: &Template) -> Option<&str> {
    let text = template.as_written();
    (!text.contains("${") && !text.contains("{env:") && !text.contains("{file:")).then_some(text)
}

/// Returns the variable that is all of a text.
fn variable_of(template: &Template) -> Option<&str> {
    whole_variable(template.as_written())
}

fn whole_variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let name = name.strip_prefix("env:").unwrap_or(name);
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
}

/// Returns a text as a string of TOML, which JSON's strings are too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

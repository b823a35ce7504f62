//! Servers of configuration files that hosts write.

use std::{io::ErrorKind, path::Path};

use pintle_host::config::{
    ConfigError, ConfigErrorKind, ConfigFile, Directories, ResolvedServer, Scope, ServerEntry, Variables,
    locations,
};

use crate::{
    args::{near, quoted},
    failure::Failure,
};

/// Splits `file.json:name`. The name is `None` if only a file was typed, and it exists: a URL may end like one.
pub(super) fn split(typed: &str) -> Option<(&str, Option<&str>)> {
    let is_file = |path: &str| {
        let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("json" | "jsonc" | "toml"))
    };
    match typed.rsplit_once(':') {
        Some((file, name)) if is_file(file) => Some((file, Some(name))),
        _ => (is_file(typed) && Path::new(typed).is_file()).then_some((typed, None)),
    }
}

/// Returns an entry of a file. Naming the file is the approval of its contents.
pub(super) fn entry_of(path: &str, name: Option<&str>) -> Result<ServerEntry, Failure> {
    let file = ConfigFile::read(path)
        .map_err(|error| Failure::usage(error.to_string(), format!("ls -l {}", quoted(path))))?;
    let name_of = |name: &str| format!("pintle info {}", quoted(&format!("{path}:{name}")));
    let names: Vec<_> = file.servers.iter().map(|entry| entry.name.as_str()).collect();
    let Some(name) = name else {
        let first = names.first().map_or_else(|| format!("cat {}", quoted(path)), |first| name_of(first));
        return Err(Failure::usage(format!("which server of `{path}`? there are {}", listed(&names)), first));
    };
    if let Some(entry) = own_entry(&file, name) {
        return Ok(entry);
    }
    if let Some(rejected) = file.rejected.iter().find(|error| error.server.as_deref() == Some(name)) {
        return Err(Failure::usage(rejected.to_string(), format!("cat {}", quoted(path))));
    }
    let meant = near(name, names.iter().copied()).or(names.first().copied());
    let next = meant.map_or_else(|| format!("cat {}", quoted(path)), name_of);
    Err(Failure::usage(format!("`{path}` has no server `{name}`: there are {}", listed(&names)), next))
}

/// Finds a name in the files of the user's hosts.
///
/// Files of the project are not used: they come with it, and a program that they name must not be started because of a word.
pub(super) fn find(name: &str, directories: &Directories) -> Result<ServerEntry, Failure> {
    let mut names = Vec::new();
    let (mut rejected, mut unread) = (None, Vec::new());
    for location in locations(directories) {
        let file = match ConfigFile::read(&location.path) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => continue,
            // It does not affect the others, but may be where the name is.
            Err(error) => {
                unread.push(error.to_string());
                continue;
            }
        };
        if location.scope == Scope::Project {
            if own_entry(&file, name).is_some() {
                let path = location.path.display().to_string();
                let message = format!(
                    "`{name}` is a server of the project's file `{path}`, which is not used by its name: read it, and \
                     name the file if you trust it"
                );
                rejected.get_or_insert(Failure::usage(
                    message,
                    format!("pintle info {}", quoted(&format!("{path}:{name}"))),
                ));
            }
            continue;
        }
        if let Some(entry) = own_entry(&file, name) {
            return Ok(entry);
        }
        if let Some(error) = file.rejected.iter().find(|error| error.server.as_deref() == Some(name)) {
            let next = format!("cat {}", quoted(&location.path.to_string_lossy()));
            rejected.get_or_insert(Failure::usage(error.to_string(), next));
        }
        names.extend(file.servers.into_iter().map(|entry| entry.name));
    }
    if let Some(rejected) = rejected {
        return Err(rejected);
    }
    let next =
        near(name, names.iter().map(String::as_str)).map(|meant| format!("pintle info {}", quoted(meant)));
    let failure = Failure::usage(
        format!(
            "no server is named `{name}`: write a URL, a host, `demo`, a file and a name, or `--` and a program"
        ),
        next.unwrap_or_else(|| "pintle ls demo".to_owned()),
    );
    Err(unread.into_iter().fold(failure, Failure::detail))
}

fn is_absent(error: &ConfigError) -> bool {
    matches!(error.kind, ConfigErrorKind::Io(ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Replaces the variables of an entry by their values.
pub(super) fn resolve(entry: &ServerEntry) -> Result<ResolvedServer, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    entry.resolve(&Variables::process().workspace(here)).map_err(|error| unresolved(&error))
}

fn unresolved(error: &ConfigError) -> Failure {
    let next = match &error.kind {
        ConfigErrorKind::UnsetVariable(name) => format!("export {name}=…"),
        _ => format!("cat {}", quoted(&error.file.to_string_lossy())),
    };
    Failure::usage(error.to_string(), next)
}

/// Returns an entry for the current directory: one of its project in the file, or else one for all.
fn own_entry(file: &ConfigFile, name: &str) -> Option<ServerEntry> {
    let here = std::env::current_dir().unwrap_or_default();
    file.servers_of(&here.to_string_lossy()).find(|entry| entry.name == name).cloned()
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.iter().take(20).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_name_are_split_at_the_last_colon() {
        assert_eq!(split(".mcp.json:git"), Some((".mcp.json", Some("git"))));
        assert_eq!(split(r"C:\x\mcp.json:git"), Some((r"C:\x\mcp.json", Some("git"))));
        assert_eq!(split("config.toml:a:b"), None);
        assert_eq!(split("clippy.toml"), Some(("clippy.toml", None)));
        assert_eq!(split("example.com/mcp.json"), None);
        for other in ["localhost:8000", "git", "example.com/x.jsonl:9", "server.py:git"] {
            assert_eq!(split(other), None, "{other}");
        }
    }
}

//! Servers of configuration files that hosts write.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::Path,
    sync::Arc,
};

use pintle_host::config::{
    ConfigError, ConfigErrorKind, ConfigFile, Directories, Host, Location, ResolvedServer, Scope,
    ServerEntry, Template, Variables, locations,
};

use super::approval::{UntrustedFile, is_absent};
use crate::{
    args::{near, quoted},
    failure::{Exit, Failure},
    output::{Output, Text},
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

/// A server of a configuration file.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredServer {
    pub(crate) entry: ServerEntry,
    /// The file, if it is not the user's own.
    pub(crate) untrusted: Option<Arc<UntrustedFile>>,
}

impl ConfiguredServer {
    /// Replaces the variables of the entry by their values, after the user has approved its file. There is no other way from an
    /// entry to a program or a URL.
    ///
    /// Inputs that were not given are asked for.
    pub(super) async fn resolve(
        &self,
        inputs: &[String],
        output: &Output,
    ) -> Result<ResolvedServer, Failure> {
        if let Some(file) = &self.untrusted {
            file.require(output).await?;
        }
        let here = std::env::current_dir().unwrap_or_default();
        let mut variables = Variables::process().workspace(here);
        let given: Vec<_> = inputs.iter().filter_map(|input| input.split_once('=')).collect();
        let ids: BTreeSet<_> = self.entry.templates().flat_map(Template::inputs).collect();
        for id in ids {
            let value = match given.iter().find(|(name, _)| *name == id) {
                Some((_, value)) => (*value).to_owned(),
                None => self.ask(id, output).await?,
            };
            variables = variables.input(id, value);
        }
        self.entry.resolve(&variables).map_err(|error| unresolved(&error))
    }

    /// Asks the user for an input.
    async fn ask(&self, id: &str, output: &Output) -> Result<String, Failure> {
        let name = &self.entry.name;
        let answer = match output.is_interactive() {
            true => {
                let mut prompt = Text::new();
                prompt.add(format_args!("{id} of {name}: "));
                output.console().turn(output).await.ask(&prompt).await
            }
            false => None,
        };
        answer.ok_or_else(|| {
            let message = format!("the server `{name}` needs the input `{id}`: give it with `--input`");
            let next = format!("pintle info {} --input {}", quoted(name), quoted(&format!("{id}=…")));
            Failure::new(Exit::NeedsInput, message, next)
        })
    }
}

/// Reads a file. It is the user's own if a host of the user keeps it at this path.
fn read(
    path: &Path,
    directories: &Directories,
) -> Result<(ConfigFile, Option<Arc<UntrustedFile>>), ConfigError> {
    let resolved = fs::canonicalize(path);
    let is_own = |location: Location| {
        let own = fs::canonicalize(&location.path);
        location.scope == Scope::User && own.is_ok_and(|own| resolved.as_ref().is_ok_and(|path| *path == own))
    };
    if locations(directories).into_iter().any(is_own) {
        return Ok((ConfigFile::read(path)?, None));
    }
    let (config, file) = UntrustedFile::read(path)?;
    Ok((config, Some(Arc::new(file))))
}

/// Returns an entry of a file.
pub(super) fn entry_of(
    path: &str,
    name: Option<&str>,
    directories: &Directories,
) -> Result<ConfiguredServer, Failure> {
    let (file, untrusted) = read(Path::new(path), directories)
        .map_err(|error| Failure::usage(error.to_string(), format!("ls -l {}", quoted(path))))?;
    let name_of = |name: &str| format!("pintle info {}", quoted(&format!("{path}:{name}")));
    let names: Vec<_> = file.servers.iter().map(|entry| entry.name.as_str()).collect();
    let Some(name) = name else {
        let first = names.first().map_or_else(|| format!("cat {}", quoted(path)), |first| name_of(first));
        return Err(Failure::usage(format!("which server of `{path}`? there are {}", listed(&names)), first));
    };
    if let Some(entry) = own_entry(&file, name) {
        return Ok(ConfiguredServer { entry, untrusted });
    }
    if let Some(rejected) = file.rejected.iter().find(|error| error.server.as_deref() == Some(name)) {
        return Err(Failure::usage(rejected.to_string(), format!("cat {}", quoted(path))));
    }
    let meant = near(name, names.iter().copied()).or(names.first().copied());
    let next = meant.map_or_else(|| format!("cat {}", quoted(path)), name_of);
    Err(Failure::usage(format!("`{path}` has no server `{name}`: there are {}", listed(&names)), next))
}

/// Finds a name in the user's own files of hosts. If they mean several servers by it, the failure asks which.
pub(super) fn find_own(name: &str, directories: &Directories) -> Result<Option<ConfiguredServer>, Failure> {
    let mut found: Vec<ServerEntry> = Vec::new();
    for location in locations(directories).into_iter().filter(|location| location.scope == Scope::User) {
        let Ok((file, _)) = read(&location.path, directories) else { continue };
        if let Some(entry) = own_entry(&file, name)
            && found.iter().all(|other| !is_same(other, &entry))
        {
            found.push(entry);
        }
    }
    match found.as_slice() {
        [] => Ok(None),
        [entry] => Ok(Some(ConfiguredServer { entry: entry.clone(), untrusted: None })),
        several => {
            let words = several.iter().map(|entry| format!("{}:{name}", entry.source.file.display()));
            let lines: Vec<_> = words.map(|word| format!("pintle info {}", quoted(&word))).collect();
            let message =
                format!("which `{name}`? {} files of hosts mean different servers by it", lines.len());
            let failure = Failure::usage(message, lines[0].clone());
            Err(lines.iter().skip(1).fold(failure, |failure, line| failure.detail(format!("or: {line}"))))
        }
    }
}

/// Returns whether two entries mean the same server: hosts write variables differently.
fn is_same(one: &ServerEntry, other: &ServerEntry) -> bool {
    let texts = |entry: &ServerEntry| -> Vec<String> {
        let written =
            entry.templates().map(|text| text.as_written().replace("{env:", "{").replace("${", "{"));
        written.collect()
    };
    texts(one) == texts(other)
}

/// Finds a name in the files of hosts: first in the user's own, then in those of the project.
///
/// A project cannot replace a server of the user by one with the same name.
pub(super) fn find(name: &str, directories: &Directories) -> Result<ConfiguredServer, Failure> {
    if let Some(own) = find_own(name, directories)? {
        return Ok(own);
    }
    let mut names = Vec::new();
    let (mut rejected, mut unread) = (None, Vec::new());
    let mut locations = locations(directories);
    locations.sort_by_key(|location| location.scope == Scope::Project);
    for location in locations {
        let (file, untrusted) = match read(&location.path, directories) {
            Ok(read) => read,
            Err(error) if is_absent(&error) => continue,
            // It does not affect the others, but may be where the name is.
            Err(error) => {
                unread.push(error.to_string());
                continue;
            }
        };
        if let Some(entry) = own_entry(&file, name) {
            return Ok(ConfiguredServer { entry, untrusted });
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
        next.unwrap_or_else(|| "pintle servers".to_owned()),
    );
    Err(unread.into_iter().fold(failure, Failure::detail))
}

/// All servers that are configured, in the order of the hosts.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) servers: Vec<ListedServer>,
    /// Why files and entries could not be read.
    pub(crate) unread: Vec<String>,
}

/// A configured server with the host that has it.
#[derive(Clone, Debug)]
pub(crate) struct ListedServer {
    pub(crate) host: Host,
    pub(crate) scope: Scope,
    pub(crate) server: ConfiguredServer,
}

/// Reads the files of all hosts.
pub(crate) fn inventory(directories: &Directories) -> Inventory {
    let mut all = Inventory::default();
    // Where the home directory is the project, a file has two locations.
    let mut seen = HashSet::new();
    let mut locations = locations(directories);
    locations.sort_by_key(|location| location.scope == Scope::Project);
    for Location { host, scope, path, .. } in locations {
        if fs::canonicalize(&path).is_ok_and(|path| !seen.insert(path)) {
            continue;
        }
        match read(&path, directories) {
            Ok((file, untrusted)) => {
                all.unread.extend(file.rejected.iter().map(ToString::to_string));
                all.servers.extend(file.servers.into_iter().map(|entry| {
                    let server = ConfiguredServer { entry, untrusted: untrusted.clone() };
                    ListedServer { host, scope, server }
                }));
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => all.unread.push(error.to_string()),
        }
    }
    all
}

/// Returns the directories of this process.
pub(crate) fn directories() -> Directories {
    Directories::of_process().project(std::env::current_dir().unwrap_or_default())
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

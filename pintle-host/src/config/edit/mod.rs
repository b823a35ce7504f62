//! Changes of configuration files.

mod json;
mod new_server;
mod replace;
#[cfg(feature = "toml")]
mod toml;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{ConfigError, ConfigErrorKind, ConfigFile, Dialect, Host, Location, read_text};
pub use new_server::NewServer;
use replace::{BACKUP, Replacement};

/// The number of attempts to change a file that others change at the same time.
const ATTEMPTS: usize = 10;

/// A change of one server in the configuration file of a host. Comments, order and formatting of everything else are kept.
///
/// ```
/// use pintle_host::config::{ConfigEdit, ConfigFile, Directories, Host, NewServer, Platform, Scope, locations};
///
/// # let home = std::env::temp_dir().join(format!("pintle-config-edit-{}", std::process::id()));
/// let files = locations(&Directories::below(Platform::current(), &home));
/// let cursor = files.iter().find(|file| file.host == Host::Cursor && file.scope == Scope::User).expect("it has one");
/// let git = NewServer::program("git", "uvx", ["mcp-server-git"]);
/// let edit = ConfigEdit::add(cursor, git);
/// println!("{}", edit.preview()?.after);
/// edit.apply()?;
/// assert!(ConfigFile::read(&cursor.path)?.server("git").is_some());
/// # std::fs::remove_dir_all(home).unwrap();
/// # Ok::<_, pintle_host::config::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "an edit does nothing until it is applied"]
pub struct ConfigEdit {
    location: Location,
    path: Arc<PathBuf>,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Add { server: NewServer, replace: bool },
    Remove { name: String },
}

/// The text of a file before and after an edit.
#[non_exhaustive]
#[derive(Clone, Eq, PartialEq)]
pub struct EditPreview {
    /// The text of the file; `None` if it does not exist.
    pub before: Option<String>,
    /// The text that would be written.
    pub after: String,
}

/// A file that was changed.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EditedFile {
    /// The file: what a symbolic link leads to.
    pub path: PathBuf,
    /// The copy of the file as it was, if it existed.
    pub backup: Option<PathBuf>,
}

impl ConfigEdit {
    /// Adds a server to the file of a host, in the form that the host reads.
    pub fn add(location: &Location, server: NewServer) -> Self {
        Self::of(location, Action::Add { server, replace: false })
    }

    /// Adds a server to the file of a host, or replaces the one with its name.
    pub fn set(location: &Location, server: NewServer) -> Self {
        Self::of(location, Action::Add { server, replace: true })
    }

    /// Removes a server from the file of a host.
    pub fn remove(location: &Location, name: impl Into<String>) -> Self {
        Self::of(location, Action::Remove { name: name.into() })
    }

    fn of(location: &Location, action: Action) -> Self {
        Self { location: location.clone(), path: Arc::new(location.path.clone()), action }
    }

    /// Returns what the edit would write. Nothing is changed.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is invalid, or has the format of another host; the name exists already, or does not; the host
    /// cannot have such a server.
    pub fn preview(&self) -> Result<EditPreview, ConfigError> {
        let before = self.current()?;
        let after = self.edited(before.as_deref().unwrap_or_default())?;
        Ok(EditPreview { before, after })
    }

    /// Changes the file: it is replaced as a whole by a new one with the same permissions, and a symbolic link is followed. The file
    /// as it was is kept beside it, with `.pintle.bak` appended to its name. If another program changes the file meanwhile, the
    /// edit is made again in its text.
    ///
    /// # Errors
    ///
    /// Those of [`preview`](Self::preview), and if the file cannot be written.
    pub fn apply(&self) -> Result<EditedFile, ConfigError> {
        // Errors that do not depend on others are found before anything is created.
        self.preview()?;
        let mut replacement = Replacement::begin(&self.location).map_err(|error| self.unwritten(&error))?;
        for _ in 0..ATTEMPTS {
            let before = self.current()?;
            let after = self.edited(before.as_deref().unwrap_or_default())?;
            let written = replacement.write(before.as_deref(), &after, || self.current());
            if let Some(edited) = written.map_err(|error| self.unwritten(&error))? {
                return Ok(edited);
            }
        }
        let kind = ConfigErrorKind::Io(io::ErrorKind::ResourceBusy);
        Err(ConfigError::file(&self.path, kind, "another program keeps changing the file: try again"))
    }

    fn current(&self) -> Result<Option<String>, ConfigError> {
        match read_text(&self.location.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind == ConfigErrorKind::Io(io::ErrorKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the changed text. What would change another server is refused.
    fn edited(&self, before: &str) -> Result<String, ConfigError> {
        let before_config = ConfigFile::parse(&self.location.path, before)?;
        let dialect = dialect(self.location.host);
        if before_config.dialect.is_some_and(|found| found != dialect) {
            let reason = format!("the file does not have the format of {}", self.location.host);
            return Err(self.refused(ConfigErrorKind::Unsupported, reason));
        }
        let (mark, text) = match before.strip_prefix('\u{feff}') {
            Some(text) => ("\u{feff}", text),
            None => ("", before),
        };
        if let Some(earlier) = self.undone(&before_config, text, dialect)
            && self.check(&before_config, &earlier).is_ok()
        {
            return Ok(earlier);
        }
        let after = match dialect {
            Dialect::Codex => self.edited_toml(text)?,
            dialect => self.edited_json(text, member(dialect))?,
        };
        let after = format!("{mark}{after}");
        self.check(&before_config, &after)?;
        Ok(after)
    }

    /// Returns the text before a server was added, if removing it is all that has happened since: with its spaces and line breaks.
    fn undone(&self, config: &ConfigFile, text: &str, dialect: Dialect) -> Option<String> {
        let Action::Remove { name } = &self.action else { return None };
        let entry = config.servers.iter().find(|entry| entry.name == *name)?.raw();
        let earlier = read_text(beside(&self.location.path.canonicalize().ok()?, BACKUP)).ok()?;
        let added = match dialect {
            Dialect::Codex => TOML.first().map(|(add, _)| add(&earlier, name, entry, false))?,
            dialect => json::add(&earlier, member(dialect), name, entry, false),
        };
        added.is_ok_and(|added| added == text).then_some(earlier)
    }

    fn edited_json(&self, text: &str, member: &str) -> Result<String, ConfigError> {
        match &self.action {
            Action::Add { server, replace } => {
                let entry = server.to_json(self.location.host);
                let entry = entry.map_err(|reason| self.refused(ConfigErrorKind::Unsupported, reason))?;
                json::add(text, member, server.name(), &entry, *replace)
            }
            Action::Remove { name } => json::remove(text, member, name),
        }
        .map_err(|fault| self.fault(fault))
    }

    fn edited_toml(&self, text: &str) -> Result<String, ConfigError> {
        let Some((add, remove)) = TOML.first() else {
            let reason = "TOML needs the feature `toml` of `pintle-host`";
            return Err(self.refused(ConfigErrorKind::Unsupported, reason));
        };
        match &self.action {
            Action::Add { server, replace } => {
                let entry = server.to_json(self.location.host);
                let entry = entry.map_err(|reason| self.refused(ConfigErrorKind::Unsupported, reason))?;
                add(text, server.name(), &entry, *replace)
            }
            Action::Remove { name } => remove(text, name),
        }
        .map_err(|fault| self.fault(fault))
    }

    /// Checks that the text has all servers of before, except for the one that was changed.
    fn check(&self, before: &ConfigFile, after: &str) -> Result<(), ConfigError> {
        let after = ConfigFile::parse(&self.location.path, after)?;
        let others = |file: &ConfigFile| -> Vec<_> {
            let others =
                file.servers.iter().filter(|entry| entry.name != self.name() || entry.project.is_some());
            others.map(|entry| (entry.name.clone(), entry.project.clone(), entry.raw().clone())).collect()
        };
        let is_there = after.server(self.name()).is_some();
        if others(before) != others(&after) || is_there != matches!(self.action, Action::Add { .. }) {
            let reason = "the file cannot be changed without changing other servers: change it by hand";
            return Err(self.refused(ConfigErrorKind::Unsupported, reason));
        }
        Ok(())
    }

    fn name(&self) -> &str {
        match &self.action {
            Action::Add { server, .. } => server.name(),
            Action::Remove { name } => name,
        }
    }

    fn fault(&self, fault: EditFault) -> ConfigError {
        match fault {
            EditFault::Exists => self
                .refused(ConfigErrorKind::AlreadyConfigured, "the file already has a server with this name"),
            EditFault::Absent => {
                self.refused(ConfigErrorKind::NotConfigured, "the file has no server with this name")
            }
            EditFault::Invalid(reason) => self.refused(ConfigErrorKind::Invalid, reason),
        }
    }

    fn refused(&self, kind: ConfigErrorKind, reason: impl Into<String>) -> ConfigError {
        ConfigError::file(&self.path, kind, reason).of_server(self.name())
    }

    fn unwritten(&self, error: &io::Error) -> ConfigError {
        let reason = format!("the file cannot be written: {error}");
        ConfigError::file(&self.path, ConfigErrorKind::Io(error.kind()), reason)
    }
}

/// The reason why a text was not changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EditFault {
    Exists,
    Absent,
    Invalid(&'static str),
}

type AddToml = fn(&str, &str, &serde_json::Value, bool) -> Result<String, EditFault>;
type RemoveToml = fn(&str, &str) -> Result<String, EditFault>;

/// The editor of TOML, in builds that have one.
const TOML: &[(AddToml, RemoveToml)] = &[
    #[cfg(feature = "toml")]
    (toml::add, toml::remove),
];

/// The dialect of a host.
fn dialect(host: Host) -> Dialect {
    match host {
        Host::VsCode => Dialect::VsCode,
        Host::Codex => Dialect::Codex,
        Host::Zed => Dialect::Zed,
        Host::OpenCode => Dialect::OpenCode,
        _ => Dialect::McpServers,
    }
}

/// The member that holds the servers in JSON.
fn member(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::VsCode => "servers",
        Dialect::Zed => "context_servers",
        Dialect::OpenCode => "mcp",
        _ => "mcpServers",
    }
}

impl std::fmt::Debug for EditPreview {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The texts may contain secrets.
        f.debug_struct("EditPreview").field("exists", &self.before.is_some()).finish_non_exhaustive()
    }
}

/// Returns a path with a suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

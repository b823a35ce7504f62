use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pintle::transport::{Child, ChildCommand};
use pintle_openapi::Redaction;

use crate::{SecretError, SecretValue};

/// The time that a process has to end after its input was closed, and after `SIGTERM`.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// A function that is called with the id of the process group of a program that has started, and returns what is dropped when that is gone.
pub(crate) type OnStart = Arc<dyn Fn(u32) -> Box<dyn Any + Send + Sync> + Send + Sync>;

/// The directory and the variables of a process.
pub(crate) struct Environment {
    pub(crate) cwd: PathBuf,
    variables: BTreeMap<String, SecretValue>,
    inherit: Vec<String>,
    on_start: Option<OnStart>,
}

impl Environment {
    /// Checks the members of an entry. The directory is relative to the folder of the file.
    pub(crate) fn new(
        folder: &Path,
        cwd: Option<&Path>,
        variables: &BTreeMap<String, SecretValue>,
        inherit: &[String],
    ) -> Result<Self, String> {
        if variables.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err("a variable of `env` has a name that no program takes: change it".to_owned());
        }
        let cwd = folder.join(cwd.unwrap_or(Path::new("")));
        Ok(Self {
            cwd: if cwd.as_os_str().is_empty() { PathBuf::from(".") } else { cwd },
            variables: variables.clone(),
            inherit: inherit.to_vec(),
            on_start: None,
        })
    }

    /// Sets a function that is called when a process has started.
    pub(crate) fn set_on_start(&mut self, on_start: OnStart) {
        self.on_start = Some(on_start);
    }

    /// Returns the names of the variables.
    pub(crate) fn names(&self) -> Vec<String> {
        self.variables.keys().cloned().collect()
    }

    /// Returns a program to start, with the secrets as they are now, and what to remove from texts that it writes for people and models.
    pub(crate) fn command(
        &self,
        program: &str,
        words: &[String],
    ) -> Result<(ChildCommand, Redaction), SecretError> {
        let command = Child::command(program).args(words).inherit_env(&self.inherit).current_dir(&self.cwd);
        let (mut command, mut secrets) = (command.grace(GRACE), Vec::new());
        if let Some(on_start) = self.on_start.clone() {
            command = command.on_start(move |group| on_start(group));
        }
        for (name, value) in &self.variables {
            let text = value.read()?;
            command = command.env(name, &text);
            if matches!(value, SecretValue::Source(_)) {
                secrets.push(text);
            }
        }
        Ok((command, Redaction::of(secrets.iter().map(String::as_str))))
    }
}

/// The values of variables are not printed.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

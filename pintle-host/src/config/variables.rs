use std::{
    collections::BTreeMap,
    env, fmt,
    path::{Path, PathBuf},
};

/// The values of the variables of a configuration file.
///
/// ```
/// use pintle_host::config::Variables;
///
/// let variables = Variables::process().set("API_URL", "http://localhost:8080").input("token", "s3cret");
/// // Values are never printed.
/// assert!(!format!("{variables:?}").contains("s3cret"));
/// ```
#[derive(Clone, Default)]
pub struct Variables {
    process: bool,
    set: BTreeMap<String, String>,
    inputs: BTreeMap<String, String>,
    workspace: Option<PathBuf>,
}

impl Variables {
    /// The environment of this process.
    pub fn process() -> Self {
        Self { process: true, ..Self::default() }
    }

    /// No variables at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets an environment variable, in place of the process's.
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.insert(name.into(), value.into());
        self
    }

    /// Sets the value of an input, which VS Code's files declare under `inputs`.
    pub fn input(mut self, id: impl Into<String>, value: impl Into<String>) -> Self {
        self.inputs.insert(id.into(), value.into());
        self
    }

    /// Sets the folder that `${workspaceFolder}` stands for.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        let process = || self.process.then(|| env::var(name).ok()).flatten();
        self.set.get(name).cloned().or_else(process)
    }

    pub(super) fn given(&self, input: &str) -> Option<&str> {
        self.inputs.get(input).map(String::as_str)
    }

    pub(super) fn workspace_folder(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables")
            .field("process", &self.process)
            .field("set", &self.set.keys())
            .field("inputs", &self.inputs.keys())
            .field("workspace", &self.workspace)
            .finish()
    }
}

//! A machine with configured servers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use super::{Printed, pintle, run};

/// A home directory and a project, removed at the end.
pub(crate) struct Machine(PathBuf);

impl Machine {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pintle-cli-{name}-{}", std::process::id()));
        let machine = Self(folder);
        let demo = json!({"command": env!("CARGO_BIN_EXE_pintle"), "args": ["demo"]});
        let cursor = json!({"mcpServers": {
            "harbour": demo,
            "secret": {"url": "http://127.0.0.1:1/mcp?key=s3cret", "headers": {"Authorization": "Bearer ${PINTLE_TEST_TOKEN}"}},
            "broken": {"args": []},
        }});
        machine.write("home/.cursor/mcp.json", &cursor.to_string());
        machine.write("project/.mcp.json", &json!({"mcpServers": {"local": demo}}).to_string());
        machine
    }

    /// A path of the machine: `home/…` or `project/…`.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// The command of the user, in the project.
    pub(crate) fn command(&self) -> Command {
        let mut command = pintle();
        command.current_dir(self.path("project")).env("HOME", self.path("home"));
        command.env_remove("PINTLE_STATE_DIR");
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        command.env("USERPROFILE", self.path("home")).env("LOCALAPPDATA", self.path("home"));
        command
    }

    pub(crate) fn typed(&self, words: &[&str]) -> Printed {
        run(self.command().args(words))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

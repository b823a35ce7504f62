//! Programs that only some steps need, and whether they are installed.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// A program besides Rust and a C compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Node,
    Python,
    Valgrind,
    CargoDeny,
    Zsh,
    Fish,
    Redis,
    Haproxy,
}

impl Tool {
    /// The name and where to get it.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Node => "Node 20 or newer with npm",
            Self::Python => "Python 3.11 or newer",
            Self::Valgrind => "valgrind",
            Self::CargoDeny => "cargo-deny (`cargo install --locked cargo-deny`)",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Redis => "redis-server",
            Self::Haproxy => "haproxy",
        }
    }

    /// The programs that have to answer `--version`.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Node => &["node", "npm"],
            Self::Python => &["python3"],
            Self::Valgrind => &["valgrind"],
            Self::CargoDeny => &["cargo-deny"],
            Self::Zsh => &["zsh"],
            Self::Fish => &["fish"],
            Self::Redis => &["redis-server"],
            Self::Haproxy => &["haproxy"],
        }
    }

    /// Whether the tool is installed, given which programs run.
    pub(super) fn is_here(self, runs: &dyn Fn(&str) -> bool) -> bool {
        self.programs().iter().all(|program| runs(program))
    }
}

/// Whether a program, looked up in the folders of `path`, answers `--version`.
pub(super) fn runs(program: &str, path: &OsStr) -> bool {
    let mut command = Command::new(program);
    // The only one that does not know the long form.
    command.arg(if program == "haproxy" { "-v" } else { "--version" }).env("PATH", path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::workspace::target;

    #[test]
    fn a_tool_is_here_if_its_programs_run() {
        let folder = target().join("tmp/xtask-tools");
        fs::create_dir_all(&folder).unwrap();
        for (name, script) in [("node", "exit 0"), ("npm", "exit 0"), ("python3", "exit 127")] {
            let file = folder.join(name);
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let here = |tool: Tool| tool.is_here(&|program| runs(program, folder.as_os_str()));
        assert!(here(Tool::Node));
        assert!(!here(Tool::Python), "a shim that finds no Python is not Python");
        assert!(!here(Tool::Valgrind));
    }

    #[test]
    fn all_programs_of_a_tool_are_needed() {
        assert!(!Tool::Node.is_here(&|program| program == "node"));
        assert!(Tool::Node.is_here(&|program| matches!(program, "node" | "npm")));
    }
}

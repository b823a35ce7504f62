use std::{fmt, path::Path};

use pintle_openapi::PlannedRequest;
use serde::Serialize;

use crate::{CommandPlan, WorkerPlan, command::quoted};

/// The plan of a call of a tool. `Display` writes it as a line for a shell.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum CallPlan {
    /// A command would run.
    Command(CommandPlan),
    /// A worker would get a line.
    Worker(WorkerPlan),
    /// An HTTP request would be sent. `Display` writes it as a command of curl.
    Request(PlannedRequest),
}

impl CallPlan {
    /// Returns the line for a shell, which enters the directory first if that is not the folder of the file.
    pub fn line(&self, folder: &Path) -> String {
        let cwd = match self {
            Self::Command(plan) => &*plan.cwd,
            Self::Worker(plan) => &*plan.command.cwd,
            Self::Request(_) => return self.to_string(),
        };
        if cwd == folder || (cwd == Path::new(".") && folder.as_os_str().is_empty()) {
            return self.to_string();
        }
        let path = cwd.to_string_lossy();
        // `cd` would take it for an option.
        let before = if path.starts_with('-') { "./" } else { "" };
        format!("cd {} && {self}", quoted(&format!("{before}{path}")))
    }
}

impl fmt::Display for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(plan) => plan.fmt(f),
            Self::Worker(plan) => plan.fmt(f),
            Self::Request(plan) => {
                if let Some(body) = plan.body.as_ref().filter(|_| plan.is_base64) {
                    write!(f, "printf %s {} | base64 -d | ", quoted(body))?;
                }
                let words: Vec<String> = plan.words().iter().map(|word| quoted(word)).collect();
                f.write_str(&words.join(" "))
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    #[test]
    fn a_shell_runs_what_is_printed_in_the_directory() {
        let folder = std::env::temp_dir().join(format!("pintle-plan-{}", std::process::id()));
        let plan = |words: &[&str], cwd: &str| CommandPlan {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            env: Vec::new(),
            cwd: cwd.into(),
            stdin: None,
            max_cpu: Some(60),
        };
        let run = |plan: &CallPlan| {
            let ran = Command::new("sh")
                .args(["-c", &plan.line(Path::new(""))])
                .current_dir(&folder)
                .output()
                .unwrap();
            String::from_utf8(ran.stdout).unwrap()
        };
        for cwd in ["it's $HOME", "-x", "a/b"] {
            fs::create_dir_all(folder.join(cwd)).unwrap();
            fs::write(folder.join(cwd).join("here"), cwd).unwrap();
            let mut command = plan(&["cat", "here", "-"], cwd);
            assert_eq!(run(&CallPlan::Command(command.clone())), cwd);
            command.max_cpu = None;
            let worker = WorkerPlan { worker: "w".into(), line: "{}".into(), command };
            assert_eq!(run(&CallPlan::Worker(worker)), format!("{cwd}{{}}\n"));
        }
        assert_eq!(run(&CallPlan::Command(plan(&["echo", "run"], "none"))), "", "nothing runs elsewhere");
        for (cwd, folder) in [(".", ""), ("./", "."), ("/srv/", "/srv")] {
            let line = CallPlan::Command(plan(&["pwd"], cwd)).line(Path::new(folder));
            assert_eq!(line, "ulimit -t 60 && pwd", "it is the folder of the file");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

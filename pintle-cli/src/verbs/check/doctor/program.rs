use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::report::Report;
use crate::args::quoted;

/// Checks that the program exists, and shows what it gets. Returns whether it can be started.
pub(super) fn check(
    program: &OsStr,
    cwd: Option<&Path>,
    variables: &[String],
    report: &mut Report<'_>,
) -> bool {
    let shown = program.to_string_lossy();
    let found = match locate(program) {
        Ok(path) => {
            report.ok("program", path.display().to_string());
            true
        }
        Err(reason) => {
            report.failed("program", format!("`{shown}`: {reason}"), format!("which {}", quoted(&shown)));
            false
        }
    };
    let passed = "the program gets PATH, HOME and the like";
    match variables {
        [] => {
            report.ok("environment", format!("{passed}, and no other variables: `--env NAME` passes one on"))
        }
        names => report.ok("environment", format!("{passed}, and {}", names.join(", "))),
    }
    match cwd {
        Some(directory) if !directory.is_dir() => {
            let directory = directory.to_string_lossy();
            report.failed(
                "directory",
                format!("there is no directory `{directory}`"),
                format!("mkdir -p {}", quoted(&directory)),
            );
            false
        }
        _ => found,
    }
}

/// Finds a program as the system does.
fn locate(program: &OsStr) -> Result<PathBuf, String> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return check_file(path).map(|()| path.to_owned());
    }
    let directories = env::var_os("PATH").unwrap_or_default();
    let mut reason = "there is no such program in `PATH`: install it, or give its path".to_owned();
    for directory in env::split_paths(&directories) {
        for ending in endings() {
            let mut name = program.to_owned();
            name.push(ending);
            let candidate = directory.join(name);
            match check_file(&candidate) {
                Ok(()) => return Ok(candidate),
                Err(unusable) if candidate.exists() => {
                    reason = format!("{}: {unusable}", candidate.display())
                }
                Err(_) => {}
            }
        }
    }
    Err(reason)
}

fn endings() -> &'static [&'static str] {
    if cfg!(windows) { &["", ".exe", ".cmd", ".bat"] } else { &[""] }
}

fn check_file(path: &Path) -> Result<(), String> {
    let metadata = path.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 == 0 {
        return Err("it is not executable: `chmod +x` makes it so".to_owned());
    }
    Ok(())
}

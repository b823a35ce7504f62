//! Small programs that use an SDK as anybody would: each is a package with a workspace of its own, below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::Failure;
use crate::workspace::{pulled_in_by, root};

/// A package with one program.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Lines under `[dependencies]`; `{root}` is this workspace.
    pub(crate) needs: &'static str,
    pub(crate) main: &'static str,
}

/// Where a program is written and built, and what to type when that fails.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The folder that has its package as a folder.
    pub(crate) folder: &'a Path,
    /// Cargo's target folder.
    pub(crate) target: &'a Path,
    pub(crate) repeat: &'static str,
}

impl Place<'_> {
    fn failure(&self, path: &Path, error: &std::io::Error) -> Failure {
        Failure::new(format!("`{}`: {error}", path.display()), self.repeat)
    }
}

impl Program {
    fn folder(&self, place: Place<'_>) -> PathBuf {
        place.folder.join(self.name)
    }

    /// Writes the package, and has cargo fetch what it needs, so that no build waits for it.
    pub(crate) fn write(&self, place: Place<'_>) -> Result<(), Failure> {
        let folder = self.folder(place);
        fs::create_dir_all(folder.join("src"))
            .and_then(|()| fs::write(folder.join("Cargo.toml"), self.manifest(&root())))
            .and_then(|()| fs::write(folder.join("src/main.rs"), self.main))
            .map_err(|error| place.failure(&folder, &error))?;
        self.cargo(place, &["fetch", "--quiet"])
    }

    fn manifest(&self, root: &Path) -> String {
        let (name, needs) = (self.name, self.needs.replace("{root}", &root.display().to_string()));
        // A workspace of its own, or cargo takes it for a lost member of ours.
        format!(
            "[package]\nname = \"smallest-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{needs}"
        )
    }

    /// Makes a change that every build notices, and that changes nothing.
    pub(crate) fn touch(&self, place: Place<'_>, round: usize) -> Result<(), Failure> {
        let path = self.folder(place).join("src/main.rs");
        fs::write(&path, format!("{}// {round}\n", self.main)).map_err(|error| place.failure(&path, &error))
    }

    /// Builds it, and returns the CPU time of that in seconds.
    pub(crate) fn build(&self, place: Place<'_>, flags: &[&str]) -> Result<f64, Failure> {
        let before = cpu_of_children(place)?;
        self.cargo(place, &[&["build", "--quiet", "--offline"], flags].concat())?;
        Ok(cpu_of_children(place)? - before)
    }

    fn cargo(&self, place: Place<'_>, words: &[&str]) -> Result<(), Failure> {
        let status = Command::new("cargo")
            .args(words)
            .current_dir(self.folder(place))
            .env("CARGO_TARGET_DIR", place.target)
            // As it is for those who set nothing.
            .env_remove("CARGO_INCREMENTAL")
            .status()
            .map_err(|error| Failure::new(error.to_string(), place.repeat))?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("{}: `cargo {}`: {status}", self.name, words.join(" ")), place.repeat))
    }

    /// Returns how many crates are built for it, on this system, itself not counted.
    pub(crate) fn crates(&self, place: Place<'_>) -> Result<usize, Failure> {
        let manifest = self.folder(place).join("Cargo.toml");
        Ok(pulled_in_by(&format!("smallest-{}", self.name), &manifest)?.len() - 1)
    }

    /// Returns the size of the program's file as a release, symbols included.
    pub(crate) fn megabytes(&self, place: Place<'_>) -> Result<f64, Failure> {
        let name = format!("release/smallest-{}{}", self.name, std::env::consts::EXE_SUFFIX);
        let path = place.target.join(name);
        let size = fs::metadata(&path).map(|program| program.len() as f64 / 1e6);
        size.map_err(|error| place.failure(&path, &error))
    }
}

/// Seconds of CPU that all children used that have ended, and theirs.
fn cpu_of_children(place: Place<'_>) -> Result<f64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|error| {
        Failure::new(format!("CPU time is read from /proc/self/stat: {error}"), place.repeat)
    })?;
    spent_by_children(&stat).ok_or_else(|| Failure::new("/proc/self/stat has no such fields", place.repeat))
}

fn spent_by_children(stat: &str) -> Option<f64> {
    // The name is in parentheses and may hold anything; `cutime` and `cstime` are the 14th and 15th after it, in
    // hundredths of a second on every Linux.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_read_past_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 11 12 1300 1400 20 0 1 0";
        assert_eq!(spent_by_children(stat), Some(27.0));
        assert_eq!(spent_by_children("7 (sh) S 1"), None);
    }

    #[test]
    fn a_manifest_names_this_workspace() {
        let program = Program { name: "a", needs: "pintle = { path = \"{root}/pintle\" }\n", main: "" };
        let manifest = program.manifest(Path::new("/r"));
        assert!(manifest.ends_with("[workspace]\n\n[dependencies]\npintle = { path = \"/r/pintle\" }\n"));
    }
}

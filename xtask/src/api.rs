//! `cargo xtask api`: the public API of each published library, compared with the snapshot in `docs/api`.
//!
//! The API is read from rustdoc's JSON, which a stable toolchain only writes with `RUSTC_BOOTSTRAP` set. Set for cargo, it would
//! have dependencies built anew; so cargo is given this program as its rustdoc, which sets it for rustdoc alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::cargo::{Cargo, Failure};
use crate::workspace::{WITH_DEV_DEPENDENCIES, crates, root, target};

const REPEAT: &str = "cargo xtask api";
const BLESS: &str = "cargo xtask api --bless";
const FOLDER: &str = "docs/api";
/// The version of rustdoc's JSON that the crate `public-api` reads.
const FORMAT: u64 = 57;
/// Set where cargo runs this program as rustdoc.
const AS_RUSTDOC: &str = "PINTLE_XTASK_AS_RUSTDOC";
/// The number of differences that are printed for each crate.
const SHOWN: usize = 40;

/// Compares the API of every published library with its snapshot. With `--bless`, writes the snapshots instead.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let bless = match args {
        [] => false,
        [bless] if bless == "--bless" => true,
        _ => return Err(Failure::new(format!("`{}` is not `--bless`", args.join(" ")), BLESS)),
    };
    if bless {
        return write();
    }
    for line in check()? {
        println!("skipped: {line}");
    }
    Ok(())
}

/// Compares, and returns what could not be compared and why.
pub(crate) fn check() -> Result<Vec<String>, Failure> {
    let (mut skipped, mut changed) = (Vec::new(), Vec::new());
    let libraries = libraries()?;
    if !libraries.iter().any(|name| snapshot(name).exists()) {
        return Ok(vec![format!("public API: no snapshot yet; `{BLESS}` writes it")]);
    }
    document()?;
    for name in &libraries {
        let Ok(before) = fs::read_to_string(snapshot(name)) else {
            skipped.push(format!("public API of `{name}`: no snapshot yet; `{BLESS}` writes it"));
            continue;
        };
        match read(name)? {
            Listing::Api(now) => changed.extend(difference(name, &before, &now)),
            Listing::OtherFormat(reason) => return Ok(vec![reason]),
        }
    }
    if changed.is_empty() {
        return Ok(skipped);
    }
    changed.push(format!("`{BLESS}` accepts it; what a user notices goes into CHANGELOG.md"));
    Err(Failure::new(changed.join("\n"), REPEAT))
}

/// Runs rustdoc with what a stable toolchain keeps back, if cargo runs this program as its rustdoc.
pub(crate) fn as_rustdoc() -> Option<ExitCode> {
    std::env::var_os(AS_RUSTDOC)?;
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(std::env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").env_remove(AS_RUSTDOC);
    let succeeded = rustdoc.status().is_ok_and(|status| status.success());
    Some(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write() -> Result<(), Failure> {
    document()?;
    for name in libraries()? {
        let api = match read(&name)? {
            Listing::Api(api) => api,
            Listing::OtherFormat(reason) => return Err(Failure::new(reason, BLESS)),
        };
        let file = snapshot(&name);
        let written = fs::create_dir_all(root().join(FOLDER)).and_then(|()| fs::write(&file, &api));
        written.map_err(|error| Failure::new(format!("`{}`: {error}", file.display()), BLESS))?;
        println!("{FOLDER}/{name}.txt: {} lines", api.lines().count());
    }
    Ok(())
}

/// Published crates that can be imported.
fn libraries() -> Result<Vec<String>, Failure> {
    let is_library = |dir: &str| root().join(dir).join("src/lib.rs").exists();
    Ok(crates()?
        .into_iter()
        .filter(|krate| krate.published && is_library(&krate.dir))
        .map(|krate| krate.name)
        .collect())
}

fn snapshot(name: &str) -> PathBuf {
    root().join(FOLDER).join(format!("{name}.txt"))
}

/// Writes the JSON of all crates, with the features that the other steps build with.
fn document() -> Result<(), Failure> {
    let this = std::env::current_exe().map_err(|error| Failure::new(error.to_string(), REPEAT))?;
    Cargo::new(&format!("doc --quiet --workspace --no-deps --lib {WITH_DEV_DEPENDENCIES} --all-features"))
        .env("RUSTDOC", this.to_string_lossy())
        .env("RUSTDOCFLAGS", "-Zunstable-options --output-format=json --cap-lints=allow")
        .env(AS_RUSTDOC, "1")
        .run()
}

/// The API of one crate, if its JSON can be read.
#[derive(Debug, PartialEq)]
enum Listing {
    /// One item a line.
    Api(String),
    /// The reason: another compiler writes another format.
    OtherFormat(String),
}

fn read(name: &str) -> Result<Listing, Failure> {
    let json = target().join("doc").join(format!("{}.json", name.replace('-', "_")));
    let failure = |what: String| Failure::new(format!("the API of `{name}`: {what}"), REPEAT);
    let text =
        fs::read_to_string(&json).map_err(|error| failure(format!("`{}`: {error}", json.display())))?;
    if let Some(reason) = other_format(&text) {
        return Ok(Listing::OtherFormat(reason));
    }
    listing(&json).map(Listing::Api).map_err(failure)
}

fn other_format(json: &str) -> Option<String> {
    let version = serde_json::from_str::<Value>(json).ok().and_then(|value| value["format_version"].as_u64());
    (version != Some(FORMAT)).then(|| {
        let version = version.map_or("of no known version".to_owned(), |version| version.to_string());
        format!(
            "public API: this compiler's rustdoc writes format {version}, and format {FORMAT} can be read"
        )
    })
}

fn listing(json: &Path) -> Result<String, String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// Lines that are only in one of the two, as `-` and `+`.
fn difference(name: &str, before: &str, now: &str) -> Vec<String> {
    let only = |text: &str, other: &str, mark: char| -> Vec<String> {
        let other: std::collections::BTreeSet<&str> = other.lines().collect();
        text.lines().filter(|line| !other.contains(line)).map(|line| format!("  {mark} {line}")).collect()
    };
    let mut lines = only(before, now, '-');
    lines.extend(only(now, before, '+'));
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    if !lines.is_empty() {
        lines.insert(0, format!("the public API of `{name}` is not that of {FOLDER}/{name}.txt:"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_and_what_is_new_is_shown() {
        assert!(difference("pintle", "pub fn a()\n", "pub fn a()\n").is_empty());
        assert_eq!(
            difference("pintle", "pub fn a()\npub fn b()\n", "pub fn a()\npub fn b(u8)\n"),
            [
                "the public API of `pintle` is not that of docs/api/pintle.txt:",
                "  - pub fn b()",
                "  + pub fn b(u8)"
            ]
        );
        let many: String = (0..50).map(|n| format!("pub fn f{n}()\n")).collect();
        assert_eq!(difference("pintle", "", &many).last().map(String::as_str), Some("  and 10 more"));
    }

    #[test]
    fn json_of_another_compiler_is_a_reason_to_skip() {
        assert_eq!(other_format(r#"{"format_version":57}"#), None);
        assert!(
            other_format(r#"{"format_version":60}"#).unwrap().contains("writes format 60, and format 57")
        );
        assert!(other_format("{}").is_some());
    }
}

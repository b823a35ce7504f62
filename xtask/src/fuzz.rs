//! `cargo xtask fuzz`: every fuzz target for a few seconds.

use std::fs;

use crate::cargo::{Cargo, Failure};
use crate::workspace::root;

const TARGETS: &str = "fuzz/fuzz_targets";
/// Inputs that libFuzzer found worth keeping, per target. Not checked in.
const CORPUS: &str = "fuzz/corpus";
/// A few inputs to start from, per target. Checked in.
const SEEDS: &str = "fuzz/seeds";
const USAGE: &str = "cargo xtask fuzz [target…] [--seconds N]";

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let asked = parse(args).map_err(|what| Failure::new(what, USAGE))?;
    let targets = choose(&asked.targets, &found()?).map_err(|what| Failure::new(what, USAGE))?;
    cargo_fuzz_is_here()?;
    for target in targets {
        println!("==> {target}, {} s", asked.seconds);
        let corpus = format!("{CORPUS}/{target}");
        fs::create_dir_all(root().join(&corpus))
            .map_err(|error| Failure::new(format!("cannot make `{corpus}`: {error}"), USAGE))?;
        run(&target, &corpus, asked.seconds)?;
    }
    Ok(())
}

/// New inputs go to the first folder. Our own code has no `unsafe`, so a sanitizer would only make it slow, and need a nightly
/// toolchain.
fn run(target: &str, corpus: &str, seconds: u32) -> Result<(), Failure> {
    let seeds =
        Some(format!("{SEEDS}/{target}")).filter(|seeds| root().join(seeds).is_dir()).unwrap_or_default();
    let stop = format!("-max_total_time={seconds} -timeout=10 -rss_limit_mb=1024");
    Cargo::new(&format!("fuzz run --sanitizer none {target} {corpus} {seeds} -- {stop}")).run()
}

#[derive(Debug)]
struct Asked {
    targets: Vec<String>,
    seconds: u32,
}

fn parse(args: &[String]) -> Result<Asked, String> {
    let mut asked = Asked { targets: Vec::new(), seconds: 20 };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--seconds" {
            let value = args.next().map_or("", String::as_str);
            asked.seconds = value
                .parse()
                .ok()
                .filter(|seconds| *seconds > 0) // 0 means "for ever" to libFuzzer
                .ok_or_else(|| format!("`--seconds` takes a whole number from 1 on, got `{value}`"))?;
        } else if arg.starts_with('-') {
            return Err(format!("no such option: `{arg}`"));
        } else {
            asked.targets.push(arg.clone());
        }
    }
    Ok(asked)
}

fn choose(asked: &[String], found: &[String]) -> Result<Vec<String>, String> {
    if asked.is_empty() {
        return Ok(found.to_vec());
    }
    match asked.iter().find(|name| !found.contains(name)) {
        Some(name) => Err(format!("no such fuzz target: `{name}`; there are: {}", found.join(", "))),
        None => Ok(asked.to_vec()),
    }
}

fn found() -> Result<Vec<String>, Failure> {
    let entries = fs::read_dir(root().join(TARGETS)).into_iter().flatten().flatten();
    let paths =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    let mut names: Vec<String> =
        paths.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    if names.is_empty() {
        return Err(Failure::new(format!("nothing to fuzz: no file in `{TARGETS}`"), USAGE));
    }
    Ok(names)
}

fn cargo_fuzz_is_here() -> Result<(), Failure> {
    if Cargo::new("fuzz --version").works() {
        return Ok(());
    }
    let what =
        "fuzzing needs cargo-fuzz, which is missing; install it with `cargo install --locked cargo-fuzz`";
    Err(Failure::new(what, USAGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn targets_and_seconds_come_in_any_order() {
        let asked = parse(&words("sse --seconds 5 headers")).unwrap();
        assert_eq!((asked.targets, asked.seconds), (words("sse headers"), 5));
        assert_eq!(parse(&[]).unwrap().seconds, 20);
    }

    #[test]
    fn bad_arguments_are_named() {
        assert!(parse(&words("--seconds soon")).unwrap_err().contains("`soon`"));
        assert!(parse(&words("--seconds 0")).unwrap_err().contains("`0`"));
        assert!(parse(&words("--seconds")).unwrap_err().contains("whole number"));
        assert!(parse(&words("--minutes 1")).unwrap_err().contains("`--minutes`"));
    }

    #[test]
    fn an_unknown_target_is_answered_with_the_known_ones() {
        assert_eq!(choose(&[], &words("message sse")).unwrap(), words("message sse"));
        let error = choose(&words("sze"), &words("message sse")).unwrap_err();
        assert_eq!(error, "no such fuzz target: `sze`; there are: message, sse");
    }
}

//! `cargo xtask dist`: the command as it is distributed.

use crate::cargo::{Cargo, Failure};
use crate::workspace::built;

/// The flags of the compiler, which no profile can have.
///
/// With frame pointers the tables for unwinding take a quarter less, and profilers need none of them.
const FLAGS: &str = "-C force-frame-pointers=yes";

/// Builds it, and prints where it is.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    if let Some(option) = args.first() {
        return Err(Failure::new(format!("no such option: `{option}`"), "cargo xtask dist"));
    }
    build()?;
    println!("{}", built("dist", "pintle").display());
    Ok(())
}

/// Builds the program `pintle` in the folder of the profile `dist`.
pub(crate) fn build() -> Result<(), Failure> {
    let build = Cargo::new("build --quiet --profile dist --package pintle-cli --bin pintle");
    build.env("RUSTFLAGS", flags(std::env::var("RUSTFLAGS").ok().as_deref())).run()
}

/// Returns all flags: those of the environment would replace these.
fn flags(given: Option<&str>) -> String {
    given
        .filter(|given| !given.trim().is_empty())
        .map_or_else(|| FLAGS.to_owned(), |given| format!("{given} {FLAGS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_environment_are_kept() {
        assert_eq!(flags(None), FLAGS);
        assert_eq!(flags(Some(" ")), FLAGS);
        assert_eq!(flags(Some("-C target-cpu=native")), format!("-C target-cpu=native {FLAGS}"));
    }
}

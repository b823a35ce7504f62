//! `cargo xtask features`: features only add, so each crate must build with none and with each alone.

use crate::cargo::{Cargo, Failure};
use crate::workspace::{Crate, crates};

pub(crate) fn command(_: &[String]) -> Result<(), Failure> {
    for krate in crates()? {
        for line in lines(&krate) {
            // Clippy and not check: it can deny warnings in our crates without rebuilding the others.
            let cargo = Cargo::new(&line);
            println!("    {cargo}");
            cargo.run()?;
        }
    }
    Ok(())
}

fn lines(krate: &Crate) -> Vec<String> {
    let name = &krate.name;
    let one = |extra: &str| {
        format!("clippy --quiet --package {name} --no-default-features {extra} -- --deny warnings")
    };
    let alone = krate.features.iter().map(|feature| one(&format!("--features {feature}")));
    std::iter::once(one("")).chain(alone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_and_each_alone() {
        let features = vec!["http".to_owned(), "stdio".to_owned()];
        let krate = Crate { name: "pintle".into(), features, ..Crate::default() };
        let lines = lines(&krate);
        assert_eq!(lines.len(), 3);
        assert!(!lines[0].contains("--features"));
        assert!(lines[1].contains("--features http"));
        assert!(lines[2].contains("--features stdio"));
    }
}

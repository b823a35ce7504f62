//! `cargo xtask chaos`: a server behind `pintle bridge` that is killed many times.

use crate::cargo::{Cargo, Failure};

const REPEAT: &str = "cargo xtask chaos";
/// As many as the tests of the command have are too few to trust.
const ROUNDS: &str = "200";

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let ChaosRun { rounds, seed } = ChaosRun::read(args)?;
    let test = Cargo::new("test --package pintle-cli --test it bridge::chaos -- --nocapture");
    let test = test.env("PINTLE_CHAOS_ROUNDS", &rounds);
    match seed {
        Some(seed) => test.env("PINTLE_CHAOS_SEED", &seed).run(),
        None => test.run(),
    }
}

/// How often the server is killed, and when.
#[derive(Debug, PartialEq)]
struct ChaosRun {
    rounds: String,
    /// Of an earlier run, which printed it.
    seed: Option<String>,
}

impl ChaosRun {
    fn read(args: &[String]) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::new(what, REPEAT);
        let mut run = Self { rounds: ROUNDS.to_owned(), seed: None };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            if flag == "--bridge" {
                // The only one so far.
                continue;
            }
            let value = args.next().filter(|value| value.parse::<u64>().is_ok());
            let value = value.ok_or_else(|| wrong(format!("`{flag}` needs a number")))?.clone();
            match flag.as_str() {
                "--rounds" => run.rounds = value,
                "--seed" => run.seed = Some(value),
                _ => return Err(wrong(format!("no such flag: `{flag}`"))),
            }
        }
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<ChaosRun, String> {
        let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        ChaosRun::read(&args).map_err(|failure| failure.what)
    }

    #[test]
    fn a_seed_and_a_number_of_rounds() {
        assert_eq!(read("--bridge"), Ok(ChaosRun { rounds: ROUNDS.to_owned(), seed: None }));
        let repeated = ChaosRun { rounds: "12".to_owned(), seed: Some("7".to_owned()) };
        assert_eq!(read("--seed 7 --rounds 12"), Ok(repeated));
        assert_eq!(read("--seed x"), Err("`--seed` needs a number".to_owned()));
        assert_eq!(read("--speed 3"), Err("no such flag: `--speed`".to_owned()));
    }
}

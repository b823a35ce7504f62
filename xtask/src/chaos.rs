//! `cargo xtask chaos`: a server behind `pintle bridge` that is killed many times, and `pintle gateway` for a minute.

use crate::cargo::{Cargo, Failure};

const REPEAT: &str = "cargo xtask chaos";
/// As many as the tests of the command have are too few to trust.
const ROUNDS: &str = "200";
/// How long a gateway is used, and by how many clients.
const SECONDS: &str = "60";
const CLIENTS: &str = "100";

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let ChaosRun { rounds, seed, is_gateway } = ChaosRun::read(args)?;
    let test = match is_gateway {
        false => Cargo::new("test --package pintle-cli --test it bridge::chaos -- --nocapture")
            .env("PINTLE_CHAOS_ROUNDS", &rounds),
        true => Cargo::new("test --package pintle-cli --test it gateway::soak -- --nocapture")
            .env("PINTLE_SOAK_SECONDS", SECONDS)
            .env("PINTLE_SOAK_CLIENTS", CLIENTS),
    };
    match seed {
        Some(seed) => test.env("PINTLE_CHAOS_SEED", &seed).run(),
        None => test.run(),
    }
}

/// The options of a run.
#[derive(Debug, PartialEq)]
struct ChaosRun {
    /// How often the server behind a bridge is killed.
    rounds: String,
    /// Of an earlier run, which printed it.
    seed: Option<String>,
    /// Whether it is a gateway in place of a bridge.
    is_gateway: bool,
}

impl ChaosRun {
    fn read(args: &[String]) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::new(what, REPEAT);
        let mut run = Self { rounds: ROUNDS.to_owned(), seed: None, is_gateway: false };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            if matches!(flag.as_str(), "--bridge" | "--gateway") {
                run.is_gateway = flag == "--gateway";
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
        let usual = |is_gateway| ChaosRun { rounds: ROUNDS.to_owned(), seed: None, is_gateway };
        assert_eq!(read("--bridge"), Ok(usual(false)));
        assert_eq!(read("--gateway"), Ok(usual(true)));
        let repeated = ChaosRun { rounds: "12".to_owned(), seed: Some("7".to_owned()), is_gateway: false };
        assert_eq!(read("--seed 7 --rounds 12"), Ok(repeated));
        assert_eq!(read("--seed x"), Err("`--seed` needs a number".to_owned()));
        assert_eq!(read("--speed 3"), Err("no such flag: `--speed`".to_owned()));
    }
}

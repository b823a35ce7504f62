//! `cargo xtask chaos`: programs that are killed, and what clients get meanwhile.

use crate::cargo::{Cargo, Failure};

const REPEAT: &str = "cargo xtask chaos [--bridge | --gateway | --fleet]";
/// The number of clients of a gateway.
const CLIENTS: &str = "100";
/// The number of calls that each of them makes in a round.
const CALLS: &str = "100";

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let run = ChaosRun::read(args)?;
    let mut test = Cargo::new(run.kind.tests());
    test = test.env("PINTLE_SOAK_CLIENTS", CLIENTS).env("PINTLE_SOAK_CALLS", CALLS);
    for (variable, value) in [(run.kind.length().1, Some(run.length)), ("PINTLE_CHAOS_SEED", run.seed)] {
        if let Some(value) = value {
            test = test.env(variable, &value);
        }
    }
    test.run()
}

/// The programs that are killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A server behind `pintle bridge`.
    Bridge,
    /// The targets of `pintle gateway`.
    Gateway,
    /// Processes that share a Redis, and the Redis.
    Fleet,
}

impl Kind {
    /// Returns the kind that a flag names.
    fn of_flag(flag: &str) -> Option<Self> {
        match flag {
            "--bridge" => Some(Self::Bridge),
            "--gateway" => Some(Self::Gateway),
            "--fleet" => Some(Self::Fleet),
            _ => None,
        }
    }

    fn tests(self) -> &'static str {
        match self {
            Self::Bridge => "test --package pintle-cli --test it bridge::chaos -- --nocapture",
            Self::Gateway => "test --package pintle-cli --test it gateway::soak -- --nocapture",
            // One after the other: each has as many processes as the machine likes.
            Self::Fleet => {
                "test --package pintle-redis --all-features --test it chaos:: -- --nocapture --test-threads 1"
            }
        }
    }

    /// The flag for how long it takes, its variable, and what it is by default: more than the tests have, which is too little to trust.
    fn length(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Bridge => ("--rounds", "PINTLE_CHAOS_ROUNDS", "200"),
            Self::Gateway => ("--rounds", "PINTLE_SOAK_ROUNDS", "10"),
            Self::Fleet => ("--seconds", "PINTLE_CHAOS_SECONDS", "300"),
        }
    }
}

/// A run: which programs are killed, for how long, and when.
#[derive(Debug, PartialEq)]
struct ChaosRun {
    kind: Kind,
    length: String,
    /// Of an earlier run, which printed it.
    seed: Option<String>,
}

impl ChaosRun {
    fn read(args: &[String]) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::new(what, REPEAT);
        let kind = args.iter().find_map(|flag| Kind::of_flag(flag)).unwrap_or(Kind::Bridge);
        let mut run = Self { kind, length: kind.length().2.to_owned(), seed: None };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            match Kind::of_flag(flag) {
                Some(named) if named == kind => continue,
                Some(_) => return Err(wrong(format!("`{flag}` is another run"))),
                None => {}
            }
            let value = args.next().filter(|value| value.parse::<u64>().is_ok());
            let value = value.ok_or_else(|| wrong(format!("`{flag}` needs a number")))?.clone();
            match flag.as_str() {
                "--seed" => run.seed = Some(value),
                flag if flag == kind.length().0 => run.length = value,
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
    fn a_seed_and_a_length() {
        let run = |kind, length: &str, seed: Option<&str>| {
            Ok(ChaosRun { kind, length: length.to_owned(), seed: seed.map(str::to_owned) })
        };
        assert_eq!(read("--bridge"), run(Kind::Bridge, "200", None));
        assert_eq!(read("--gateway"), run(Kind::Gateway, "10", None));
        assert_eq!(read("--gateway --fleet"), Err("`--fleet` is another run".to_owned()));
        assert_eq!(read("--seed 7 --rounds 12"), run(Kind::Bridge, "12", Some("7")));
        assert_eq!(read("--seconds 600 --fleet --seed 7"), run(Kind::Fleet, "600", Some("7")));
        assert_eq!(read("--seed x"), Err("`--seed` needs a number".to_owned()));
        assert_eq!(read("--speed 3"), Err("no such flag: `--speed`".to_owned()));
        assert_eq!(read("--fleet --rounds 3"), Err("no such flag: `--rounds`".to_owned()));
    }
}

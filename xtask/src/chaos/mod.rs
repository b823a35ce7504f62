//! `cargo xtask chaos`: programs that are killed, and what clients get meanwhile.

use crate::cargo::{Cargo, Failure};

const REPEAT: &str = "cargo xtask chaos [--bridge | --gateway | --fleet]";
/// The number of clients of a gateway.
const CLIENTS: &str = "100";
/// The number of calls that each of them makes in a round.
const CALLS: &str = "100";
/// The number of these calls if seconds count, so that the last round ends soon after them.
const CALLS_OF_SHORT_ROUND: &str = "10";
/// The number of calls before the first round, which may leave nothing: so many that a leak of a kilobyte is more than chance.
const STEADY_CALLS: &str = "20000";
/// The variable of the seconds that a gateway is used for at least.
const SOAK_SECONDS: &str = "PINTLE_SOAK_SECONDS";

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let run = ChaosRun::read(args)?;
    let mut test = Cargo::new(run.kind.tests());
    let calls = match run.length.variable {
        SOAK_SECONDS => CALLS_OF_SHORT_ROUND,
        _ => CALLS,
    };
    test = test.env("PINTLE_SOAK_CLIENTS", CLIENTS).env("PINTLE_SOAK_CALLS", calls);
    test = test.env("PINTLE_SOAK_STEADY_CALLS", STEADY_CALLS);
    test = test.env(run.length.variable, &run.length.value);
    if let Some(seed) = run.seed {
        test = test.env("PINTLE_CHAOS_SEED", &seed);
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

    /// How long it takes by default: more than the tests have, which is too little to trust.
    fn default_length(self) -> RunLength {
        match self {
            Self::Bridge => RunLength::new("PINTLE_CHAOS_ROUNDS", "200"),
            Self::Gateway => RunLength::new("PINTLE_SOAK_ROUNDS", "10"),
            Self::Fleet => RunLength::new("PINTLE_CHAOS_SECONDS", "300"),
        }
    }

    /// The variable of a flag for how long it takes; `None` if it has no such flag.
    fn length_variable(self, flag: &str) -> Option<&'static str> {
        match (self, flag) {
            (Self::Bridge, "--rounds") => Some("PINTLE_CHAOS_ROUNDS"),
            (Self::Gateway, "--rounds") => Some("PINTLE_SOAK_ROUNDS"),
            (Self::Gateway, "--seconds") => Some(SOAK_SECONDS),
            (Self::Fleet, "--seconds") => Some("PINTLE_CHAOS_SECONDS"),
            _ => None,
        }
    }
}

/// How long a run takes: a variable of the tests, and its value.
#[derive(Debug, PartialEq)]
struct RunLength {
    variable: &'static str,
    value: String,
}

impl RunLength {
    fn new(variable: &'static str, value: impl Into<String>) -> Self {
        Self { variable, value: value.into() }
    }
}

/// A run: which programs are killed, for how long, and when.
#[derive(Debug, PartialEq)]
struct ChaosRun {
    kind: Kind,
    length: RunLength,
    /// Of an earlier run, which printed it.
    seed: Option<String>,
}

impl ChaosRun {
    fn read(args: &[String]) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::new(what, REPEAT);
        let kind = args.iter().find_map(|flag| Kind::of_flag(flag)).unwrap_or(Kind::Bridge);
        let mut run = Self { kind, length: kind.default_length(), seed: None };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            match Kind::of_flag(flag) {
                Some(named) if named == kind => continue,
                Some(_) => return Err(wrong(format!("`{flag}` is another run"))),
                None => {}
            }
            let value = args.next().filter(|value| value.parse::<u64>().is_ok());
            let value = value.ok_or_else(|| wrong(format!("`{flag}` needs a number")))?.clone();
            match (flag.as_str(), kind.length_variable(flag)) {
                ("--seed", _) => run.seed = Some(value),
                (_, Some(variable)) => run.length = RunLength::new(variable, value),
                (_, None) => return Err(wrong(format!("no such flag: `{flag}`"))),
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
        let run = |kind, (variable, value): (&'static str, &str), seed: Option<&str>| {
            Ok(ChaosRun { kind, length: RunLength::new(variable, value), seed: seed.map(str::to_owned) })
        };
        assert_eq!(read("--bridge"), run(Kind::Bridge, ("PINTLE_CHAOS_ROUNDS", "200"), None));
        assert_eq!(read("--gateway"), run(Kind::Gateway, ("PINTLE_SOAK_ROUNDS", "10"), None));
        let minute = run(Kind::Gateway, ("PINTLE_SOAK_SECONDS", "60"), Some("7"));
        assert_eq!(read("--gateway --seconds 60 --seed 7"), minute);
        assert_eq!(read("--gateway --fleet"), Err("`--fleet` is another run".to_owned()));
        assert_eq!(read("--seed 7 --rounds 12"), run(Kind::Bridge, ("PINTLE_CHAOS_ROUNDS", "12"), Some("7")));
        let fleet = run(Kind::Fleet, ("PINTLE_CHAOS_SECONDS", "600"), Some("7"));
        assert_eq!(read("--seconds 600 --fleet --seed 7"), fleet);
        assert_eq!(read("--bridge --seconds 3"), Err("no such flag: `--seconds`".to_owned()));
        assert_eq!(read("--seed x"), Err("`--seed` needs a number".to_owned()));
        assert_eq!(read("--speed 3"), Err("no such flag: `--speed`".to_owned()));
        assert_eq!(read("--fleet --rounds 3"), Err("no such flag: `--rounds`".to_owned()));
    }
}

//! The number of tests that ran.

use std::fmt;

/// The number of tests over all test binaries.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds libtest's line `test result: ok. 3 passed; 0 failed; 1 ignored; …`; other lines add nothing.
    pub(super) fn read(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let rest = rest.split_once(". ").map_or(rest, |(_, counts)| counts);
        for part in rest.split("; ") {
            let Some((number, word)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed; {} failed; {} ignored", self.passed, self.failed, self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_over_binaries() {
        let mut tally = Tally::default();
        tally.read("running 4 tests");
        tally.read(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        tally.read("test result: FAILED. 2 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(tally, Tally { passed: 5, failed: 5, ignored: 1 });
        assert_eq!(tally.to_string(), "5 passed; 5 failed; 1 ignored");
    }
}

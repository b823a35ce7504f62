//! The cost of the hot paths at the last `--bless`.

use std::fmt;

use super::profile::Profile;

/// A case may cost this many hundredths more than its baseline.
const TOLERATED: u64 = 3;
/// How many functions a failure names.
const NAMED: usize = 3;

/// Each case and its profile, in the order in which they are counted.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Baseline {
    /// The compiler and libc that it was counted with: others inline and copy otherwise.
    pub(super) machine: String,
    pub(super) cases: Vec<(String, Profile)>,
}

impl Baseline {
    /// Reads what `to_string` has written.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut baseline = Self::default();
        for line in text.lines() {
            let wrong = || format!("`{line}` is neither a case nor a function");
            if let Some(machine) = line.strip_prefix("# ") {
                machine.clone_into(&mut baseline.machine);
            } else if let Some(function) = line.strip_prefix("  ") {
                let (cost, name) = function.trim_start().split_once(' ').ok_or_else(wrong)?;
                let (_, profile) = baseline.cases.last_mut().ok_or_else(wrong)?;
                profile.0.insert(name.to_owned(), cost.parse().map_err(|_| wrong())?);
            } else {
                baseline.cases.push((line.to_owned(), Profile::default()));
            }
        }
        Ok(baseline)
    }

    fn of(&self, case: &str) -> Option<&Profile> {
        self.cases.iter().find(|(name, _)| name == case).map(|(_, profile)| profile)
    }

    /// Returns a case with its profile.
    pub(super) fn case(&self, name: &str) -> Option<(String, Profile)> {
        self.cases.iter().find(|(case, _)| case == name).cloned()
    }

    /// Whether the case costs more than it may.
    pub(super) fn is_passed(&self, case: &str, now: &Profile) -> bool {
        self.of(case).is_some_and(|before| now.total() * 100 > before.total() * (100 + TOLERATED))
    }

    /// The reason not to compare with counts of this machine, if it is another than the baseline's.
    pub(super) fn incomparable(&self, machine: &str) -> Option<String> {
        (self.machine != machine).then(|| {
            let counted = &self.machine;
            format!("instructions: the baseline was counted with {counted}, and here is {machine}; `{}` counts anew", super::BLESS)
        })
    }

    /// The cases that cost more than is tolerated, with the functions that grew.
    pub(super) fn grown(&self, before: &Self) -> Vec<String> {
        let grown = self.cases.iter().filter_map(|(case, now)| match before.of(case) {
            None => Some(format!("`{case}` has no baseline: say `{}`", super::BLESS)),
            Some(old) if before.is_passed(case, now) => Some(format!("`{case}` {}", growth(now, old))),
            Some(_) => None,
        });
        let gone = before.cases.iter().filter(|(case, _)| self.of(case).is_none());
        let gone = gone.map(|(case, _)| format!("`{case}` is not counted any more: say `{}`", super::BLESS));
        grown.chain(gone).collect()
    }

    /// Cases that cost more than the one beside them, give or take one in a hundred.
    pub(super) fn excess(&self, pairs: &[(&str, &str)]) -> Vec<String> {
        let cost = |case: &str| self.of(case).map(Profile::total);
        let judged = pairs.iter().map(|(case, bound)| match (cost(case), cost(bound)) {
            (Some(cost), Some(limit)) if cost <= limit + limit / 100 => None,
            (Some(cost), Some(limit)) => Some(format!("`{case}` costs {cost}, and `{bound}` only {limit}")),
            _ => Some(format!("`{case}` or `{bound}` is not counted any more: correct the row of `NO_MORE`")),
        });
        judged.flatten().collect()
    }

    pub(super) fn table(&self) -> String {
        let rows = self.cases.iter().map(|(case, cost)| format!("| {case} | {} |\n", grouped(cost.total())));
        std::iter::once("| path | instructions |\n|---|---:|\n".to_owned()).chain(rows).collect()
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}", self.machine)?;
        for (case, profile) in &self.cases {
            writeln!(f, "{case}")?;
            let mut functions: Vec<_> = profile.0.iter().collect();
            functions.sort_by_key(|(name, cost)| (std::cmp::Reverse(*cost), *name));
            functions.iter().try_for_each(|(name, cost)| writeln!(f, "  {cost:>8} {name}"))?;
        }
        Ok(())
    }
}

fn growth(now: &Profile, before: &Profile) -> String {
    let (total, was) = (now.total(), before.total());
    let thousandths = (total - was) * 1000 / was.max(1);
    let functions = now.grown(before).into_iter().take(NAMED);
    let functions: Vec<_> = functions.map(|(name, more)| format!("`{name}` by {}", grouped(more))).collect();
    format!(
        "costs {} instructions, {}.{} % over its baseline of {}; most grew {}",
        grouped(total),
        thousandths / 10,
        thousandths % 10,
        grouped(was),
        functions.join(", "),
    )
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(cases: &[(&str, &[(&str, u64)])]) -> Baseline {
        let case = |(name, costs): &(&str, &[(&str, u64)])| {
            let costs = costs.iter().map(|(function, cost)| ((*function).to_owned(), *cost));
            ((*name).to_owned(), Profile(costs.collect()))
        };
        Baseline { machine: "rustc 1.88.0, glibc 2.36".into(), cases: cases.iter().map(case).collect() }
    }

    #[test]
    fn what_was_written_is_read() {
        let written = baseline(&[
            ("call, small", &[("malloc", 90), ("core::fmt::write", 1200)]),
            ("list", &[("memcpy", 7)]),
        ]);
        assert_eq!(
            written.to_string(),
            "# rustc 1.88.0, glibc 2.36\ncall, small\n      1200 core::fmt::write\n        90 malloc\nlist\n         7 memcpy\n"
        );
        assert_eq!(Baseline::read(&written.to_string()), Ok(written));
        assert_eq!(Baseline::read("  x").unwrap_err(), "`  x` is neither a case nor a function");
    }

    #[test]
    fn three_hundredths_more_are_tolerated() {
        let before = baseline(&[("call", &[("parse", 600), ("print", 400)])]);
        let grown =
            |parse, print| baseline(&[("call", &[("parse", parse), ("print", print)])]).grown(&before);
        assert!(grown(630, 400).is_empty());
        assert!(grown(300, 300).is_empty());
        assert_eq!(
            grown(635, 402),
            [
                "`call` costs 1,037 instructions, 3.7 % over its baseline of 1,000; most grew `parse` by 35, `print` by 2"
            ]
        );
    }

    #[test]
    fn another_compiler_or_libc_is_a_reason_to_skip() {
        let before = baseline(&[]);
        assert_eq!(before.incomparable("rustc 1.88.0, glibc 2.36"), None);
        for other in ["rustc 1.95.0, glibc 2.36", "rustc 1.88.0, glibc 2.41", "rustc 1.88.0, unknown libc"] {
            let reason = before.incomparable(other).unwrap();
            assert!(reason.contains(&format!("rustc 1.88.0, glibc 2.36, and here is {other}")), "{reason}");
        }
    }

    #[test]
    fn cases_come_and_go_only_with_a_new_baseline() {
        let (before, now) = (baseline(&[("old", &[("f", 1)])]), baseline(&[("new", &[("f", 1)])]));
        assert_eq!(
            now.grown(&before),
            [
                "`new` has no baseline: say `cargo xtask instructions --bless`",
                "`old` is not counted any more: say `cargo xtask instructions --bless`"
            ]
        );
    }

    #[test]
    fn what_should_cost_nothing_is_noticed_if_it_does() {
        let counted = |case| baseline(&[("typed", &[("f", case)]), ("by hand", &[("f", 100)])]);
        let pairs = [("typed", "by hand")];
        assert!(counted(101).excess(&pairs).is_empty());
        assert_eq!(counted(102).excess(&pairs), ["`typed` costs 102, and `by hand` only 100"]);
        assert_eq!(baseline(&[]).excess(&pairs).len(), 1);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            ["0", "999", "1,000", "12,345,678"],
            [0, 999, 1000, 12_345_678].map(grouped).each_ref().map(|s| &**s)
        );
    }
}

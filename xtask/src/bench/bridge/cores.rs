//! The cores of the machine, for processes that must not disturb each other.

use std::fs;

/// A core for what is measured, and one for what makes the calls and answers them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cores {
    measured: usize,
    others: usize,
}

impl Cores {
    /// Returns `None` if there is only one core, or the system does not tell.
    pub(super) fn find() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/self/status").ok()?)
    }

    fn of(status: &str) -> Option<Self> {
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let ranges = allowed.trim().split(',').filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse().ok()?..=last.parse().ok()?)
        });
        let mut cores = ranges.flatten();
        Some(Self { measured: cores.next()?, others: cores.next()? })
    }

    /// The words before a command line that is measured.
    pub(super) fn of_measured(cores: Option<Self>) -> Vec<String> {
        cores.map(|cores| on(cores.measured)).unwrap_or_default()
    }

    /// The words before every other command line.
    pub(super) fn of_others(cores: Option<Self>) -> Vec<String> {
        cores.map(|cores| on(cores.others)).unwrap_or_default()
    }
}

fn on(core: usize) -> Vec<String> {
    ["taskset".to_owned(), "-c".to_owned(), core.to_string()].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_cores_are_used() {
        let of = |list: &str| Cores::of(&format!("Name:\tx\nCpus_allowed_list:\t{list}\nMems:\t0\n"));
        assert_eq!(of("0-3"), Some(Cores { measured: 0, others: 1 }));
        assert_eq!(of("2,5-7"), Some(Cores { measured: 2, others: 5 }));
        assert_eq!(of("3"), None);
        assert_eq!(Cores::of(""), None);
        assert_eq!(Cores::of_measured(of("2,5-7")), ["taskset", "-c", "2"]);
        assert_eq!(Cores::of_others(of("2,5-7")), ["taskset", "-c", "5"]);
        assert!(Cores::of_measured(None).is_empty());
    }
}

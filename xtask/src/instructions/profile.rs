//! Where the instructions of one case go, function by function.

use std::collections::BTreeMap;

/// Functions that cost less than one in this many of their case are not told apart.
const WORTH: u64 = 200;
const REST: &str = "(everything else)";

/// The cost of each function by itself, without those that it calls.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Profile(pub(super) BTreeMap<String, u64>);

impl Profile {
    /// Reads what callgrind writes with `--compress-pos=no`: `fn=(3) name` or `fn=(3)` opens a function, a line of two
    /// numbers is a place and its cost, and the one after `calls=` is what a callee cost, which is the callee's.
    pub(super) fn read(text: &str) -> Self {
        let mut names: BTreeMap<&str, String> = BTreeMap::new();
        let mut costs: BTreeMap<String, u64> = BTreeMap::new();
        let mut function = String::new();
        let mut of_callee = false;
        for line in text.lines() {
            if let Some(named) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
                let (id, name) = named.split_once(' ').unwrap_or((named, ""));
                let known = names.entry(id).or_insert_with(|| plain(name));
                if line.starts_with("fn=") {
                    function.clone_from(known);
                }
            } else if line.starts_with("calls=") {
                of_callee = true;
            } else if let Some((place, cost)) = line.split_once(' ')
                && place.bytes().all(|byte| byte.is_ascii_digit())
                && let Ok(cost) = cost.trim().parse::<u64>()
                && !std::mem::take(&mut of_callee)
            {
                *costs.entry(function.clone()).or_default() += cost;
            }
        }
        Self(costs)
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The difference to another profile; nothing is below zero.
    pub(super) fn less(mut self, other: &Self) -> Self {
        for (name, cost) in &other.0 {
            if let Some(own) = self.0.get_mut(name) {
                *own = own.saturating_sub(*cost);
            }
        }
        self
    }

    pub(super) fn per(mut self, times: u64) -> Self {
        for cost in self.0.values_mut() {
            *cost /= times;
        }
        self.0.retain(|_, cost| *cost > 0);
        self
    }

    /// With what costs less than one in [`WORTH`] put together: that many lines would say little, and differ each time.
    pub(super) fn folded(self) -> Self {
        let least = self.total() / WORTH;
        let mut folded = BTreeMap::new();
        for (name, cost) in self.0 {
            *folded.entry(if cost < least { REST.to_owned() } else { name }).or_default() += cost;
        }
        Self(folded)
    }

    /// The functions that cost more than before, by how much, the worst first.
    pub(super) fn grown(&self, before: &Self) -> Vec<(&str, u64)> {
        let more =
            |(name, cost): (&'_ String, &u64)| cost.saturating_sub(before.0.get(name).copied().unwrap_or(0));
        let mut grown: Vec<_> = self.0.iter().map(|entry| (entry.0.as_str(), more(entry))).collect();
        grown.retain(|(_, more)| *more > 0);
        grown.sort_by_key(|(name, more)| (std::cmp::Reverse(*more), *name));
        grown
    }
}

/// A name without what changes with each build: the hash at its end, and callgrind's number of the recursion.
fn plain(name: &str) -> String {
    let name = name
        .rsplit_once('\'')
        .filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()))
        .map_or(name, |(name, _)| name);
    let hash = |end: &str| {
        end.len() == 17 && end.starts_with('h') && end[1..].bytes().all(|b| b.is_ascii_hexdigit())
    };
    name.rsplit_once("::").filter(|(_, end)| hash(end)).map_or(name, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
version: 1
events: Ir

ob=(1) /bin/x
fl=(1) ???
fn=(1) pintle::parse::h0123456789abcdef
0 10
cfn=(2) malloc
calls=3 0
0 300
0 5

fn=(2)
0 300
fn=(3) walk'2
0 7
totals: 322
";

    fn profile(costs: &[(&str, u64)]) -> Profile {
        Profile(costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect())
    }

    #[test]
    fn what_a_callee_costs_is_counted_once() {
        assert_eq!(Profile::read(FILE), profile(&[("pintle::parse", 15), ("malloc", 300), ("walk", 7)]));
    }

    #[test]
    fn start_up_is_taken_away() {
        let (few, many) = (profile(&[("main", 50), ("call", 10)]), profile(&[("main", 50), ("call", 110)]));
        assert_eq!(many.less(&few).per(10), profile(&[("call", 10)]));
    }

    #[test]
    fn small_things_are_put_together() {
        let all = profile(&[("large", 1000), ("worth it", 6), ("small", 2), ("smaller", 1)]);
        assert_eq!(all.folded(), profile(&[("large", 1000), ("worth it", 6), ("(everything else)", 3)]));
    }

    #[test]
    fn the_worst_comes_first() {
        let before = profile(&[("same", 5), ("more", 10), ("less", 10)]);
        let now = profile(&[("same", 5), ("more", 12), ("less", 9), ("new", 7)]);
        assert_eq!(now.grown(&before), [("new", 7), ("more", 2)]);
    }
}

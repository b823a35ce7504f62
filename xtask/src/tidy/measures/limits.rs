//! The limits of the measures, one `name = number` a line.

use super::super::Fault;
use super::super::tree::Tree;

pub(super) const FILE: &str = "xtask/tidy.toml";

/// The content of `xtask/tidy.toml`: name, number, line.
#[derive(Debug, Default)]
pub(super) struct Limits(Vec<(String, usize, usize)>);

impl Limits {
    /// Reads the file; lines that cannot be read are faults.
    pub(super) fn read(tree: &Tree) -> (Self, Vec<Fault>) {
        let (mut limits, mut faults) = (Self::default(), Vec::new());
        for (index, line) in tree.text(FILE).lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let number =
                line.split_once('=').and_then(|(name, value)| Some((name, value.trim().parse().ok()?)));
            match number {
                Some((name, value)) => limits.0.push((name.trim().to_owned(), value, index + 1)),
                None if line.is_empty() => {}
                None => faults.push(Fault::new(FILE, index + 1, format!("`{line}` is not `name = number`"))),
            }
        }
        (limits, faults)
    }

    pub(super) fn of(&self, name: &str) -> Option<usize> {
        self.0.iter().find(|(own, ..)| own == name).map(|(_, value, _)| *value)
    }

    /// The line of a limit, or 0 if there is none.
    pub(super) fn line(&self, name: &str) -> usize {
        self.0.iter().find(|(own, ..)| own == name).map_or(0, |(.., line)| *line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_bad_lines_are_faults() {
        let (limits, faults) = Limits::read(&Tree::of(&[(FILE, "# why\na = 3 # goal 0\nb: 4\n")]));
        assert_eq!((limits.of("a"), limits.line("a"), limits.of("b")), (Some(3), 2, None));
        assert_eq!(faults[0].to_string(), "xtask/tidy.toml:3: `b: 4` is not `name = number`");
    }
}

//! The measurements: the rounds of each row and column.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::tally::{Sample, Wall};

/// The subject of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) section: Section,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) goal: Option<Goal>,
}

/// Rows that are shown together.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Section {
    Http,
    Stdio,
    Process,
    Client,
    Curve,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unit {
    Micros,
    Bytes,
}

/// The maximum cost of the second column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// So many times what the first costs.
    Times(f64),
    Max(f64),
}

/// All figures of one table. The columns are compared with the first, and the second is the one that has goals.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) names: Vec<String>,
    rows: Vec<(Row, Vec<Cell>)>,
}

/// How often something is tried that does not work.
const TRIES: usize = 2;

/// After so many rounds it is known who is far behind.
pub(crate) const SETTLED: usize = 3;

#[derive(Clone, Debug, Default)]
struct Cell {
    rounds: BTreeMap<usize, Sample>,
    /// Why it did not work.
    faults: Vec<String>,
}

impl Figures {
    pub(crate) fn new(names: Vec<String>, rows: impl IntoIterator<Item = Row>) -> Self {
        let cells = vec![Cell::default(); names.len()];
        Self { names, rows: rows.into_iter().map(|row| (row, cells.clone())).collect() }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, &Row)> {
        self.rows.iter().enumerate().map(|(at, (row, _))| (at, row))
    }

    pub(crate) fn of(&self, section: Section) -> impl Iterator<Item = (usize, &Row)> {
        self.rows().filter(move |(_, row)| row.section == section)
    }

    pub(crate) fn add(&mut self, row: usize, column: usize, round: usize, sample: Result<Sample, String>) {
        let Some(cell) = self.rows.get_mut(row).and_then(|(_, cells)| cells.get_mut(column)) else { return };
        match sample {
            Ok(sample) => {
                cell.rounds.insert(round, sample);
            }
            Err(fault) => cell.faults.push(fault),
        }
    }

    /// Whether this round has a figure already.
    pub(crate) fn has(&self, row: usize, column: usize, round: usize) -> bool {
        self.cell(row, column).is_some_and(|cell| cell.rounds.contains_key(&round))
    }

    /// Says beforehand why there will be no figure.
    pub(crate) fn leave_out(&mut self, row: usize, column: usize, why: String) {
        if let Some(cell) = self.rows.get_mut(row).and_then(|(_, cells)| cells.get_mut(column)) {
            cell.faults = vec![why; TRIES];
        }
    }

    /// Whether it is worth trying.
    pub(crate) fn may_work(&self, row: usize, column: usize) -> bool {
        self.cell(row, column).is_some_and(|cell| cell.faults.len() < TRIES)
    }

    /// Whether it costs over twice what the second column does, by enough rounds: more would not change what is said of it,
    /// and take time from what is close.
    pub(crate) fn is_settled(&self, row: usize, column: usize) -> bool {
        let enough = column > 1 && self.cell(row, column).is_some_and(|cell| cell.rounds.len() >= SETTLED);
        enough && self.cost(row, column) > self.cost(row, 1).map(|ours| 2.0 * ours)
    }

    /// Why there is no figure.
    pub(crate) fn fault(&self, row: usize, column: usize) -> Option<&str> {
        let cell = self.cell(row, column).filter(|cell| cell.rounds.is_empty())?;
        cell.faults.first().map(String::as_str)
    }

    /// A fault, and whose it is.
    pub(crate) fn describe(&self, row: usize, column: usize, fault: &str) -> String {
        let row = self.rows.get(row).map_or("", |(row, _)| &row.name);
        format!("{}, {row}: {fault}", self.names.get(column).map_or("", String::as_str))
    }

    /// Returns a failure of the second column, which must not fail.
    pub(crate) fn failed(&self) -> Option<String> {
        (0..self.rows.len()).find_map(|row| Some(self.describe(row, 1, self.fault(row, 1)?)))
    }

    /// The median of all rounds.
    pub(crate) fn cost(&self, row: usize, column: usize) -> Option<f64> {
        median(self.cell(row, column)?.rounds.values().map(|sample| sample.cost))
    }

    /// How many times the first column's cost: the median of what it was in each round.
    pub(crate) fn times(&self, row: usize, column: usize) -> Option<f64> {
        let (base, cell) = (self.cell(row, 0)?, self.cell(row, column)?);
        let both = cell.rounds.iter().filter_map(|(round, sample)| Some((sample, base.rounds.get(round)?)));
        median(both.map(|(sample, base)| sample.cost / base.cost)).filter(|times| times.is_finite())
    }

    /// Medians of what a clock on the wall said.
    pub(crate) fn wall(&self, row: usize, column: usize) -> Option<Wall> {
        let walls: Vec<_> =
            self.cell(row, column)?.rounds.values().filter_map(|sample| sample.wall).collect();
        let of = |part: fn(&Wall) -> f64| median(walls.iter().map(part));
        Some(Wall { per_second: of(|w| w.per_second)?, p50: of(|w| w.p50)?, p99: of(|w| w.p99)? })
    }

    /// How far the second column is over its goal, as a ratio; `None` if it meets it or has none.
    pub(crate) fn excess(&self, row: usize) -> Option<f64> {
        let excess = match self.rows.get(row)?.0.goal? {
            Goal::Times(goal) => self.times(row, 1)? / goal,
            Goal::Max(goal) => self.cost(row, 1)? / goal,
        };
        // What is printed has two decimals.
        (excess > 1.005).then_some(excess)
    }

    /// Returns the columns after the second that need less than it. What each is beside the first counts, where there is such a
    /// thing: a machine that was slow for a while was so for both.
    pub(crate) fn ahead(&self, row: usize) -> Vec<&str> {
        let need = |column| match self.rows.get(row)?.0.unit {
            Unit::Micros => self.times(row, column),
            Unit::Bytes => self.cost(row, column),
        };
        let Some(ours) = need(1) else { return Vec::new() };
        let others = self.names.iter().enumerate().skip(2);
        others
            .filter(|(column, _)| need(*column).is_some_and(|theirs| theirs < ours))
            .map(|(_, name)| name.as_str())
            .collect()
    }

    /// How many rounds there were.
    pub(crate) fn rounds(&self) -> usize {
        let cells = self.rows.iter().flat_map(|(_, cells)| cells);
        cells.filter_map(|cell| cell.rounds.last_key_value()).map(|(round, _)| round + 1).max().unwrap_or(0)
    }

    /// Everything, a line each.
    pub(crate) fn data(&self) -> String {
        let mut lines = String::new();
        for (row, cells) in &self.rows {
            for (name, cell) in self.names.iter().zip(cells) {
                for (round, sample) in &cell.rounds {
                    let wall = sample.wall.map_or(
                        Value::Null,
                        |wall| json!({"per_second": wall.per_second, "p50_us": wall.p50, "p99_us": wall.p99}),
                    );
                    let line = json!({"row": row.name, "name": name, "round": round, "cost": sample.cost, "wall": wall});
                    lines.push_str(&format!("{line}\n"));
                }
                for fault in &cell.faults {
                    let line = json!({"row": row.name, "name": name, "fault": fault});
                    lines.push_str(&format!("{line}\n"));
                }
            }
        }
        lines
    }

    fn cell(&self, row: usize, column: usize) -> Option<&Cell> {
        self.rows.get(row)?.1.get(column)
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row of each kind: one over its goal, one that a peer cannot do, and one in bytes.
    pub(crate) fn some() -> Figures {
        let row = |section, name: &str, unit, goal| Row { section, name: name.to_owned(), unit, goal };
        let rows = [
            row(Section::Http, "small", Unit::Micros, Some(Goal::Times(1.25))),
            row(Section::Http, "question", Unit::Micros, None),
            row(Section::Process, "idle", Unit::Bytes, Some(Goal::Max(1024.0))),
        ];
        let mut figures = Figures::new(["limit", "pintle", "rmcp"].map(str::to_owned).to_vec(), rows);
        let wall = Some(Wall { per_second: 12_345.6, p50: 21.04, p99: 130.0 });
        for (round, costs) in
            [[10.0, 20.0, 50.0], [100.0, 150.0, 600.0], [12.0, 12.0, 60.0]].iter().enumerate()
        {
            for (column, cost) in costs.iter().enumerate() {
                figures.add(0, column, round, Ok(Sample { cost: *cost, wall }));
            }
        }
        figures.add(1, 0, 0, Ok(Sample { cost: 30.0, wall }));
        figures.add(1, 1, 0, Ok(Sample { cost: 45.0, wall }));
        figures.add(1, 2, 0, Err("it did not ask".to_owned()));
        for (column, cost) in [70.0, 610.0, 500.0].into_iter().enumerate() {
            figures.add(2, column, 0, Ok(Sample { cost, wall: None }));
        }
        figures
    }

    #[test]
    fn rounds_are_compared_with_each_other() {
        let figures = some();
        assert_eq!(
            (figures.cost(0, 1), figures.times(0, 1), figures.times(0, 2)),
            (Some(20.0), Some(1.5), Some(5.0))
        );
        assert_eq!(figures.wall(0, 1).unwrap().p50, 21.04);
        assert_eq!(figures.rounds(), 3);
    }

    #[test]
    fn who_is_far_behind_is_not_asked_again() {
        let mut figures = some();
        assert!(figures.is_settled(0, 2), "60 against 20, in three rounds");
        assert!(!figures.is_settled(0, 0) && !figures.is_settled(0, 1), "they are compared to the end");
        assert!(!figures.is_settled(2, 2), "it is ahead");
        figures.add(2, 2, 0, Ok(Sample { cost: 5000.0, wall: None }));
        assert!(!figures.is_settled(2, 2), "one round may be chance");
    }

    #[test]
    fn what_is_over_its_goal_or_behind_is_known() {
        let figures = some();
        assert_eq!((figures.excess(0), figures.excess(1), figures.excess(2)), (Some(1.2), None, None));
        assert!(figures.ahead(0).is_empty());
        assert_eq!(figures.ahead(2), ["rmcp"]);
    }

    #[test]
    fn what_does_not_work_is_tried_twice() {
        let mut figures = some();
        figures.leave_out(2, 0, "too large".to_owned());
        assert!(!figures.may_work(2, 0));
        let mut figures = some();
        assert_eq!((figures.fault(1, 2), figures.may_work(1, 2)), (Some("it did not ask"), true));
        figures.add(1, 2, 1, Err("again".to_owned()));
        assert!(!figures.may_work(1, 2));
        assert_eq!(figures.failed(), None);
        figures.add(0, 1, 3, Err("fell over".to_owned()));
        assert_eq!(figures.failed(), None, "it worked before");
        assert_eq!(figures.data().lines().count(), 10 + 2 + 2 + 3);
    }
}

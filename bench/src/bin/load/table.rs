use std::fmt::Write as _;

use crate::{Cost, MEASURED};

/// What was measured: for each workload and server the rounds.
pub(crate) struct Figures(Vec<Vec<Vec<Cost>>>);

pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) goal: f64,
}

impl Figures {
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        Self(vec![vec![Vec::new(); columns]; rows])
    }

    pub(crate) fn add(&mut self, row: usize, column: usize, cost: Cost) {
        if let Some(rounds) = self.0.get_mut(row).and_then(|row| row.get_mut(column)) {
            rounds.push(cost);
        }
    }

    /// In the words of a page: microseconds of CPU for each request, and how many times the first server's that is.
    pub(crate) fn table(&self, rows: &[Row], names: &[&str]) -> String {
        let [first, others @ ..] = names else { return String::new() };
        let mut text = format!("| CPU µs per request | {first} |");
        for name in others {
            let _ = write!(text, " {name} | × {first} |");
        }
        let _ = write!(text, " goal |\n|---|{}---:|\n", "---:|".repeat(1 + 2 * others.len()));
        for (Row { name, goal }, columns) in rows.iter().zip(&self.0) {
            let Some((base, columns)) = columns.split_first() else { continue };
            let _ = write!(text, "| {name} | {:.2} |", median(base.iter().map(micros)));
            for column in columns {
                let ratios = column.iter().zip(base).map(|(cost, base)| micros(cost) / micros(base));
                let _ = write!(text, " {:.2} | {:.2} |", median(column.iter().map(micros)), median(ratios));
            }
            let _ = writeln!(text, " {goal} |");
        }
        text
    }
}

/// Under what conditions it was measured.
pub(crate) fn told(rounds: usize, pinned: bool, (before, after): (&str, &str)) -> String {
    let pinned = if pinned { "generator and server pinned to a core each" } else { "nothing pinned" };
    let (requests, time) = (MEASURED.requests, MEASURED.time.as_millis());
    format!(
        "Median of {rounds} rounds of at most {requests} requests or {time} ms each; {pinned}; load average of the machine {before} before and {after} after.\n\n"
    )
}

/// Of the last minute.
pub(crate) fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("unknown").to_owned()
}

fn micros(cost: &Cost) -> f64 {
    cost.cpu.as_secs_f64() * 1e6 / cost.requests.max(1) as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rounds_are_compared_with_each_other() {
        let mut figures = Figures::new(1, 2);
        for (base, other) in [(10, 20), (100, 150), (12, 12)] {
            for (column, micros) in [(0, base), (1, other)] {
                figures.add(0, column, Cost { requests: 2, cpu: Duration::from_micros(2 * micros) });
            }
        }
        let rows = [Row { name: "small".to_owned(), goal: 1.25 }];
        let table = figures.table(&rows, &["limit", "pintle"]);
        assert!(
            table.ends_with("|---|---:|---:|---:|---:|\n| small | 12.00 | 20.00 | 1.50 | 1.25 |\n"),
            "{table}"
        );
    }
}

//! The figures in the words of a page.

use std::fmt::Write as _;

use crate::figures::{Figures, Goal, Row, Section, Unit};

impl Section {
    fn title(self) -> &'static str {
        match self {
            Self::Http => "HTTP, CPU µs per request",
            Self::Stdio => "stdio, CPU µs per request",
            Self::Process => "the process",
            Self::Client => "clients, CPU µs per call",
            Self::Curve => "small call in a session, CPU µs",
        }
    }
}

/// Formats the costs, their ratios to the first column, and the goals.
pub(crate) fn costs(figures: &Figures, section: Section) -> String {
    let rows = shown(figures, section);
    let (false, [first, ours, others @ ..]) = (rows.is_empty(), figures.names.as_slice()) else {
        return String::new();
    };
    let mut text = format!("| {} | {first} | {ours} | × {first} | goal | |", section.title());
    for name in others {
        let _ = write!(text, " {name} | × |");
    }
    let _ = write!(text, "\n|---|---:|---:|---:|---:|---|{}\n", "---:|---:|".repeat(others.len()));
    for (at, row) in rows {
        let goal = match row.goal {
            Some(Goal::Times(goal)) => format!("{goal}"),
            Some(Goal::Max(goal)) => number(goal),
            None => String::new(),
        };
        let mark = match (row.goal, figures.excess(at)) {
            (None, _) => "",
            (Some(_), None) if figures.cost(at, 1).is_none() => "",
            (Some(_), None) => "✓",
            (Some(_), Some(_)) => "✗",
        };
        let cost = |column| figures.cost(at, column).map_or("–".to_owned(), number);
        // Of bytes it says nothing: the first server holds an id for each session.
        let times = |column| match row.unit {
            Unit::Micros => figures.times(at, column).map_or("–".to_owned(), |times| format!("{times:.2}")),
            Unit::Bytes => String::new(),
        };
        let _ = write!(text, "| {} | {} | {} | {} | {goal} | {mark} |", row.name, cost(0), cost(1), times(1));
        for column in 2..2 + others.len() {
            let _ = write!(text, " {} | {} |", cost(column), times(column));
        }
        text.push('\n');
    }
    text
}

/// Formats wall-clock times.
pub(crate) fn walls(figures: &Figures, section: Section) -> String {
    let (rows, names) = (shown(figures, section), &figures.names);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("| a second; p50 / p99 µs | {} |\n|---|", names.join(" | "));
    let _ = writeln!(text, "{}", "---:|".repeat(names.len()));
    for (at, row) in rows {
        let _ = write!(text, "| {} |", row.name);
        for column in 0..names.len() {
            let cell = figures.wall(at, column).map_or("–".to_owned(), |wall| {
                format!("{}; {} / {}", number(wall.per_second), number(wall.p50), number(wall.p99))
            });
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    text
}

/// Goals that are not met and by how much, and where another one needs less.
pub(crate) fn not_met(tables: &[&Figures]) -> String {
    let mut text = String::new();
    for figures in tables {
        let [first, ours, ..] = figures.names.as_slice() else { continue };
        for (at, row) in figures.rows() {
            if let (Some(excess), Some(goal)) = (figures.excess(at), row.goal) {
                let percent = (excess - 1.0) * 100.0;
                let (is, goal) = match goal {
                    Goal::Times(goal) => (
                        format!("{:.2} × {first}", figures.times(at, 1).unwrap_or_default()),
                        format!("{goal}"),
                    ),
                    Goal::Max(goal) => (number(figures.cost(at, 1).unwrap_or_default()), number(goal)),
                };
                let _ = writeln!(text, "- {}: {is}, {percent:.0} % over the goal of {goal}", row.name);
            }
            let ahead = figures.ahead(at);
            if !ahead.is_empty() {
                let _ = writeln!(text, "- {}: {} needs less than {ours}", row.name, ahead.join(" and "));
            }
        }
    }
    match text.is_empty() {
        true => "All goals are met, and nobody else needs less in any row.\n".to_owned(),
        false => format!("Not met:\n\n{text}"),
    }
}

/// Why some figures are missing.
pub(crate) fn missing(tables: &[&Figures]) -> String {
    let mut text = String::new();
    for figures in tables {
        for (at, row) in figures.rows() {
            for (column, name) in figures.names.iter().enumerate() {
                if let Some(fault) = figures.fault(at, column) {
                    let _ = writeln!(text, "- {name}, {}: {}", row.name, in_a_line(fault));
                }
            }
        }
    }
    if text.is_empty() { text } else { format!("Not measured (–):\n\n{text}") }
}

/// The rows that have figures, and where they are.
fn shown(figures: &Figures, section: Section) -> Vec<(usize, &Row)> {
    figures.of(section).filter(|(at, _)| figures.cost(*at, 0).is_some()).collect()
}

/// Formats the output of a program for Markdown.
fn in_a_line(text: &str) -> String {
    let plain = text.replace(['`', '|', '<', '>', '\r', '\n'], " ");
    let words: Vec<_> = plain.split_whitespace().collect();
    let mut line: String = words.join(" ").chars().take(160).collect();
    line.insert(0, '`');
    line.push('`');
    line
}

/// In groups of three digits, below a million.
pub(crate) fn whole(value: usize) -> String {
    if value < 1000 { value.to_string() } else { format!("{},{:03}", value / 1000, value % 1000) }
}

/// Three digits, or all of them in groups.
pub(crate) fn number(value: f64) -> String {
    if value < 9.995 {
        return format!("{value:.2}");
    }
    if value < 99.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::some;

    #[test]
    fn a_row_has_costs_ratios_and_a_mark() {
        let table = costs(&some(), Section::Http);
        assert_eq!(
            table,
            "| HTTP, CPU µs per request | limit | pintle | × limit | goal | | rmcp | × |\n\
             |---|---:|---:|---:|---:|---|---:|---:|\n\
             | small | 12.0 | 20.0 | 1.50 | 1.25 | ✗ | 60.0 | 5.00 |\n\
             | question | 30.0 | 45.0 | 1.50 |  |  | – | – |\n"
        );
        let table = costs(&some(), Section::Process);
        assert!(table.ends_with("| idle | 70.0 | 610 |  | 1,024 | ✓ | 500 |  |\n"), "{table}");
        assert_eq!(costs(&some(), Section::Stdio), "");
    }

    #[test]
    fn the_wall_is_beside_it() {
        let table = walls(&some(), Section::Http);
        assert!(table.contains("| small | 12,346; 21.0 / 130 |"), "{table}");
        assert!(table.ends_with("| – |\n"), "{table}");
    }

    #[test]
    fn what_is_not_met_is_said_with_its_measure() {
        assert_eq!(
            not_met(&[&some()]),
            "Not met:\n\n- small: 1.50 × limit, 20 % over the goal of 1.25\n- idle: rmcp needs less than pintle\n"
        );
        assert_eq!(missing(&[&some()]), "Not measured (–):\n\n- rmcp, question: `it did not ask`\n");
    }

    #[test]
    fn numbers_have_three_digits() {
        let numbers = [0.0, 1.234, 9.999, 45.67, 99.96, 12_345.6].map(number);
        assert_eq!(numbers, ["0.00", "1.23", "10.0", "45.7", "100", "12,346"]);
    }
}

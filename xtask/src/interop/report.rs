//! The matrix: on the terminal, and in `docs/interop.md`.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::cells::CELLS;
use super::judge::{Judged, Mark};
use super::rows::{Peer, TheirRole};

/// A row for each conversation, a column for each thing done in it; below it why some cells cannot be.
pub(super) fn table<'a>(judged: impl IntoIterator<Item = &'a Judged>) -> String {
    let judged: Vec<&Judged> = judged.into_iter().collect();
    let reasons: BTreeSet<_> = judged.iter().flat_map(|judged| &judged.marks).filter_map(reason).collect();
    let mut text = String::from("| theirs | over | era |");
    for (cell, _) in CELLS {
        let _ = write!(text, " {cell} |");
    }
    let _ = writeln!(text, "\n|---|---|---|{}", ":-:|".repeat(CELLS.len()));
    for Judged { row, marks, fault } in judged {
        let (peer, transport, era) = (row.peer.as_str(), row.transport.as_str(), row.era.as_str());
        let _ = write!(text, "| {peer} {} | {transport} | {era} |", row.role.as_str());
        for mark in marks {
            let _ = match mark {
                Mark::Works => write!(text, " ✓ |"),
                Mark::Cannot(why) => {
                    write!(text, " ({}) |", 1 + reasons.iter().position(|other| other == why).unwrap_or(0))
                }
                Mark::Fault(_) => write!(text, " ✗ |"),
            };
        }
        text.push_str(if fault.is_some() { " ✗\n" } else { "\n" });
    }
    for (at, why) in reasons.iter().enumerate() {
        let _ = writeln!(text, "\n({}) {why}", at + 1);
    }
    text
}

fn reason(mark: &Mark) -> Option<&'static str> {
    match mark {
        Mark::Cannot(why) => Some(why),
        _ => None,
    }
}

/// Everything that is not as it should be, a line each.
pub(super) fn faults(judged: &[Judged]) -> Vec<String> {
    let mut faults = Vec::new();
    for Judged { row, marks, fault } in judged {
        let name = row.name();
        faults.extend(fault.iter().map(|fault| format!("{name}: {fault}")));
        for ((cell, _), mark) in CELLS.iter().zip(marks) {
            if let Mark::Fault(fault) = mark {
                faults.push(format!("{name}: {cell}: {fault}"));
            }
        }
    }
    faults
}

/// The page for people.
pub(super) fn page(judged: &[Judged]) -> String {
    let mut text = String::from(
        "# Interoperability with other SDKs\n\n\
         Pintle's client with the servers of other SDKs, its server with their clients, and its bridge between the two.\n\
         `cargo xtask interop` runs them and writes this page. It fails if a cell fails, or if a cell that is marked impossible\n\
         passes. The programs are in [interop](../interop/README.md).\n\n",
    );
    for peer in Peer::ALL {
        let _ = writeln!(text, "- `{}`: {}", peer.as_str(), peer.title());
    }
    text.push_str("\nThe era is the mode of the client: with a session, without one, or negotiated.\n\n");
    for (cell, shown) in CELLS {
        let _ = writeln!(text, "- {cell}: {shown}");
    }
    let sides = [
        (TheirRole::Server, "Our client, their server"),
        (TheirRole::Client, "Our server, their client"),
        (TheirRole::Both, "The TypeScript client, `pintle bridge`, the Python server"),
    ];
    for (role, title) in sides {
        let rows = judged.iter().filter(|judged| judged.row.role == role);
        let _ = write!(text, "\n## {title}\n\n{}", table(rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::judge::judge;
    use super::super::rows::{Era, Row, Transport};
    use super::*;

    fn judged(peer: Peer, era: Era, output: &str, fault: Option<&str>) -> Judged {
        let row = Row { peer, transport: Transport::Stdio, era, role: TheirRole::Client };
        judge(row, output, fault.map(str::to_owned))
    }

    #[test]
    fn every_cell_has_its_mark_and_what_cannot_be_has_a_reason() {
        let open = "{\"cell\":\"open\",\"ok\":\"2025-11-25\"}\n";
        let rows = [judged(Peer::Ts1, Era::Session, open, None), judged(Peer::Ts1, Era::Stateless, "", None)];
        let text = table(&rows);
        let lines: Vec<_> = text.lines().skip(2).collect();
        let others = CELLS.len() - 1;
        assert_eq!(lines[0], format!("| ts1 client | stdio | session | ✓ |{}", " ✗ |".repeat(others)));
        assert_eq!(lines[1], format!("| ts1 client | stdio | stateless |{}", " (1) |".repeat(others + 1)));
        assert_eq!(lines[3], "(1) the TypeScript SDK 1.x has sessions only");
        assert_eq!(faults(&rows).len(), others);
    }

    #[test]
    fn a_fault_names_its_row_and_its_cell() {
        let rows = [judged(Peer::Ts1, Era::Stateless, "{\"cell\":\"read\",\"ok\":\"x\"}\n", Some("hangs"))];
        let faults = faults(&rows);
        assert_eq!(faults[0], "ts1/stdio/stateless/client: hangs");
        assert!(faults[1].starts_with("ts1/stdio/stateless/client: read: works, though"), "{faults:?}");
    }

    #[test]
    fn the_page_has_both_sides() {
        let text = page(&[judged(Peer::Ts1, Era::Stateless, "", None)]);
        assert!(text.contains("## Our server, their client"));
        assert!(text.contains("## Our client, their server"));
        assert!(text.contains("- `rmcp`: rmcp "));
    }
}

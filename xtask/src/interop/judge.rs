//! The verdict on a row: each cell works, cannot be, or is a fault.

use std::collections::BTreeMap;

use super::cells::{self, CELLS, Reported};
use super::reasons;
use super::rows::Row;

/// The first revision without sessions. Those of the conversations here are all known, so its name is enough.
const STATELESS: &str = "2026-07-28";

/// One row, judged.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) row: Row,
    /// In the order of the columns.
    pub(super) marks: Vec<Mark>,
    /// An error besides the cells.
    pub(super) fault: Option<String>,
}

/// The verdict on a cell.
#[derive(Debug, PartialEq)]
pub(super) enum Mark {
    Works,
    /// The other side cannot, and this is why.
    Cannot(&'static str),
    Fault(String),
}

/// Judges what a client output, and how its process and the server's fared.
pub(super) fn judge(row: Row, output: &str, fault: Option<String>) -> Judged {
    let (cells, misread) = match cells::read(output) {
        Ok(cells) => (cells, None),
        Err(error) => (BTreeMap::new(), Some(error)),
    };
    let marks = CELLS.iter().map(|(cell, _)| mark(&row, cell, cells.get(cell))).collect();
    Judged { row, marks, fault: fault.or(misread) }
}

fn mark(row: &Row, cell: &str, output: Option<&Reported>) -> Mark {
    match (output, reasons::reason(row, cell)) {
        (Some(Reported::Works(revision)), None) if cell == "open" => opened(row, revision),
        (Some(Reported::Works(_)), None) => Mark::Works,
        (Some(Reported::Works(_)), Some(why)) => Mark::Fault(format!(
            "works, though xtask/src/interop/reasons.rs says that {why}: take it out there"
        )),
        (_, Some(why)) => Mark::Cannot(why),
        (Some(Reported::Fails(error)), None) => Mark::Fault(error.clone()),
        (None, None) => Mark::Fault("nothing was reported".to_owned()),
    }
}

fn opened(row: &Row, revision: &str) -> Mark {
    if (revision == STATELESS) == row.is_stateless() {
        Mark::Works
    } else {
        Mark::Fault(format!("they speak {revision}, which is the other era"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Era, Peer, TheirRole, Transport};
    use super::*;

    fn row(peer: Peer, era: Era) -> Row {
        Row { peer, transport: Transport::Http, era, role: TheirRole::Server }
    }

    fn all_well(revision: &str) -> String {
        let line = |(cell, _): &(&str, &str)| {
            let shown = if *cell == "open" { revision } else { "fine" };
            format!("{{\"cell\":\"{cell}\",\"ok\":\"{shown}\"}}\n")
        };
        CELLS.iter().map(line).collect()
    }

    fn faults(judged: &Judged) -> usize {
        judged.marks.iter().filter(|mark| matches!(mark, Mark::Fault(_))).count()
    }

    #[test]
    fn a_row_in_which_everything_works_is_full() {
        let judged = judge(row(Peer::Ts2, Era::Auto), &all_well("2026-07-28"), None);
        assert!(judged.marks.iter().all(|mark| *mark == Mark::Works));
        assert_eq!(judged.fault, None);
    }

    #[test]
    fn a_cell_that_fails_or_is_not_spoken_of_is_a_fault() {
        let output = all_well("2026-07-28");
        let failed = output.replace(r#"{"cell":"call","ok":"fine"}"#, r#"{"cell":"call","error":"no sum"}"#);
        let judged = judge(row(Peer::Ts2, Era::Auto), &failed, None);
        assert_eq!(judged.marks[2], Mark::Fault("no sum".to_owned()));
        assert_eq!(faults(&judged), 1);

        let missing: String = output.lines().take(5).map(|line| format!("{line}\n")).collect();
        let judged = judge(row(Peer::Ts2, Era::Auto), &missing, None);
        assert_eq!(faults(&judged), CELLS.len() - 5);
    }

    #[test]
    fn the_wrong_era_is_a_fault() {
        assert_eq!(faults(&judge(row(Peer::Ts2, Era::Auto), &all_well("2025-11-25"), None)), 1);
        assert_eq!(faults(&judge(row(Peer::Ts2, Era::Session), &all_well("2026-07-28"), None)), 1);
        assert_eq!(faults(&judge(row(Peer::Ts1, Era::Auto), &all_well("2025-11-25"), None)), 0);
    }

    #[test]
    fn what_a_peer_cannot_do_is_no_fault_unless_it_can() {
        let cannot = row(Peer::Ts1, Era::Stateless);
        let judged = judge(cannot, "{\"cell\":\"open\",\"error\":\"it has sessions only\"}\n", None);
        assert!(judged.marks.iter().all(|mark| matches!(mark, Mark::Cannot(_))));
        assert_eq!(faults(&judge(cannot, &all_well("2026-07-28"), None)), CELLS.len());
    }

    #[test]
    fn what_cannot_be_read_and_a_process_that_fails_are_faults() {
        let judged = judge(row(Peer::Ts2, Era::Auto), "Segmentation fault\n", None);
        assert_eq!(judged.fault.as_deref(), Some("the client printed `Segmentation fault`"));
        let judged = judge(row(Peer::Ts2, Era::Auto), &all_well("2026-07-28"), Some("hangs".to_owned()));
        assert_eq!(judged.fault.as_deref(), Some("hangs"));
    }
}

//! Features that other SDKs lack. A cell leaves this table when it works: that is a fault until it is taken out.

use super::rows::{Era, Peer, Row, TheirRole, Transport};

/// Which cells, and why not; `None` is all of them.
#[derive(Debug)]
struct Reason {
    peer: Peer,
    transport: Option<Transport>,
    era: Option<Era>,
    role: Option<TheirRole>,
    cell: Option<&'static str>,
    why: &'static str,
}

const REASONS: &[Reason] = &[Reason {
    peer: Peer::Ts1,
    transport: None,
    era: Some(Era::Stateless),
    role: None,
    cell: None,
    why: "the TypeScript SDK 1.x has sessions only",
}];

/// Why the other side cannot do this, if it cannot.
pub(super) fn reason(row: &Row, cell: &str) -> Option<&'static str> {
    REASONS.iter().find(|reason| reason.covers(row, cell)).map(|reason| reason.why)
}

impl Reason {
    fn covers(&self, row: &Row, cell: &str) -> bool {
        self.peer == row.peer
            && self.transport.is_none_or(|transport| transport == row.transport)
            && self.era.is_none_or(|era| era == row.era)
            && self.role.is_none_or(|role| role == row.role)
            && self.cell.is_none_or(|only| only == cell)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::super::rows;
    use super::*;

    #[test]
    fn every_reason_is_about_a_cell_of_the_matrix() {
        for reason in REASONS {
            let covered = rows::all().any(|row| CELLS.iter().any(|(cell, _)| reason.covers(&row, cell)));
            assert!(covered, "{reason:?}");
        }
    }

    #[test]
    fn a_reason_is_about_what_it_says_and_nothing_else() {
        let narrow = Reason {
            peer: Peer::Py2,
            transport: Some(Transport::Http),
            era: None,
            role: Some(TheirRole::Client),
            cell: Some("cancel"),
            why: "",
        };
        let row =
            Row { peer: Peer::Py2, transport: Transport::Http, era: Era::Auto, role: TheirRole::Client };
        assert!(narrow.covers(&row, "cancel"));
        assert!(!narrow.covers(&row, "call"));
        assert!(!narrow.covers(&Row { transport: Transport::Stdio, ..row }, "cancel"));
        assert!(!narrow.covers(&Row { role: TheirRole::Server, ..row }, "cancel"));
        assert!(!narrow.covers(&Row { peer: Peer::Rmcp, ..row }, "cancel"));
    }
}

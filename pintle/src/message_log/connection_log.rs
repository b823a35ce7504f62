use std::{net::SocketAddr, time::SystemTime};

use super::{Counters, Direction, HttpRecord, MessageLog, MessageRecord, Payload, Side};
use crate::message_log::transport_kind::TransportKind;

/// The log of one connection, for programs that pass messages on without being a client or a server of their own, such as a proxy.
///
/// Numbers, redaction and the format are those of the [`MessageLog`]. Cheap to clone.
///
/// ```
/// use pintle::{message_log::{ConnectionLog, Direction, MessageLog, Side}, transport::TransportKind};
///
/// let (sender, records) = std::sync::mpsc::channel();
/// let log = MessageLog::new(move |record| drop(sender.send(record.to_string())));
/// let connection = ConnectionLog::new(&log, Side::Client, TransportKind::Stdio, None);
/// connection.message(Direction::Out, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// assert_eq!(records.recv().unwrap(), r#"1 → {"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionLog {
    pub(super) log: MessageLog,
    side: Side,
    transport: TransportKind,
    /// `None` for a server over HTTP, whose requests come over any connection.
    connection: Option<u64>,
    peer: Option<SocketAddr>,
}

impl ConnectionLog {
    /// Creates the log of a new connection over a transport. Directions are those that `side` sees.
    pub fn new(log: &MessageLog, side: Side, transport: TransportKind, peer: Option<SocketAddr>) -> Self {
        Self {
            log: log.clone(),
            side,
            transport,
            connection: Some(Counters::next(&log.counters.connections)),
            peer,
        }
    }

    /// Creates the log of a request to a server over HTTP.
    #[cfg(feature = "http-server")]
    pub(crate) fn of_http_server(log: &MessageLog, peer: Option<SocketAddr>) -> Self {
        let (side, transport) = (Side::Server, TransportKind::Http);
        Self { log: log.clone(), side, transport, connection: None, peer }
    }

    /// Logs a message, or a text that should be one.
    pub fn message(&self, direction: Direction, message: &[u8]) {
        self.with_payload(direction, message, |payload| self.emit(direction, None, None, payload));
    }

    /// Logs a message that exceeded the limit and was not kept.
    pub fn oversized(&self, direction: Direction) {
        self.emit(direction, None, None, Payload::Oversized);
    }

    /// Redacts a message.
    pub(super) fn with_payload(&self, direction: Direction, message: &[u8], emit: impl FnOnce(Payload<'_>)) {
        let by_client = self.side.sends(direction) == Side::Client;
        match self.log.redactor.message(message, by_client) {
            Ok(message) => emit(Payload::Message(&message)),
            Err(withheld) => emit(Payload::Text(&withheld)),
        }
    }

    pub(super) fn emit(
        &self,
        direction: Direction,
        session: Option<&str>,
        http: Option<HttpRecord<'_>>,
        payload: Payload<'_>,
    ) {
        let Self { log, side, transport, connection, peer } = self;
        log.emit(&MessageRecord {
            number: Counters::next(&log.counters.records),
            time: SystemTime::now(),
            side: *side,
            direction,
            transport: *transport,
            connection: *connection,
            peer: *peer,
            session,
            http,
            payload,
        });
    }
}

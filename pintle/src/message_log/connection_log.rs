use std::{net::SocketAddr, time::SystemTime};

use super::{Counters, Direction, HttpRecord, MessageLog, MessageRecord, Payload, Side};
use crate::message_log::transport_kind::TransportKind;

/// The log of one connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLog {
    pub(super) log: MessageLog,
    side: Side,
    transport: TransportKind,
    /// `None` for a server over HTTP, whose requests come over any connection.
    connection: Option<u64>,
    peer: Option<SocketAddr>,
}

impl ConnectionLog {
    /// Creates the log of a new connection over a transport.
    pub(crate) fn new(
        log: &MessageLog,
        side: Side,
        transport: TransportKind,
        peer: Option<SocketAddr>,
    ) -> Self {
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

    /// Logs a message.
    pub(crate) fn message(&self, direction: Direction, message: &[u8]) {
        self.with_payload(direction, message, |payload| self.emit(direction, None, None, payload));
    }

    /// Logs a message that exceeded the limit and was discarded.
    pub(crate) fn oversized(&self, direction: Direction) {
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

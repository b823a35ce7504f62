use pintle_types::schema::{ClientCapabilities, Implementation, LoggingLevel};
use serde::{Deserialize, Serialize};

use super::{Engine, Service, session::ServerSession, weight};
use crate::{
    Revision,
    ledger::{Account, Held, Owner},
};

/// The persistent state of a session, from which another process can continue it.
///
/// ```
/// use pintle_proto::{Revision, server::{Engine, Service, SessionRecord}};
/// use pintle_types::schema::{Implementation, ServerCapabilities};
///
/// let service = Service::new(Implementation::new("adder", "1.0.0"), ServerCapabilities::default());
/// let oldest = Revision::all().next_back().expect("there are some");
/// let engine = Engine::restore(&service, &SessionRecord::new(oldest), 0).expect("it is spoken");
/// assert_eq!(engine.record(), Some(SessionRecord::new(oldest)));
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// The name of the revision that was agreed on.
    pub revision: String,
    /// The client's name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Implementation>,
    /// The client's capabilities.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
    /// The minimum level of the log messages that the client wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LoggingLevel>,
    /// The resources that the client watches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<String>,
}

impl SessionRecord {
    /// Creates the record of a session with this revision and nothing else.
    pub fn new(revision: Revision) -> Self {
        Self {
            revision: revision.as_str().to_owned(),
            client: None,
            capabilities: ClientCapabilities::default(),
            log_level: None,
            watched: Vec::new(),
        }
    }

    /// Estimates the memory of the client's description, in bytes.
    pub(super) fn weight(&self) -> usize {
        // A record created for a single request has no description.
        if self.client.is_none() {
            return 0;
        }
        let weight = |printed: serde_json::Result<String>| printed.map_or(0, |text| weight::weight(&text));
        weight(serde_json::to_string(&self.client)) + weight(serde_json::to_string(&self.capabilities))
    }
}

impl Service {
    /// Returns whether there is memory for a recorded session of an owner besides the others: see
    /// [`Limits::sessions_bytes`](crate::Limits::sessions_bytes).
    pub fn has_room_for(&self, record: &SessionRecord, account: &Account) -> bool {
        let watched: usize = record.watched.iter().map(|uri| weight::watched(uri)).sum();
        let bytes = record.weight().saturating_add(watched);
        account.charge(Held::Session, bytes, self.bounds().ceiling(Held::Session)).is_ok()
    }
}

impl Engine {
    /// Returns the record of the session, without requests in flight. `None` before the handshake.
    pub fn record(&self) -> Option<SessionRecord> {
        self.session.as_ref().map(ServerSession::record)
    }

    /// Updates the session from a record that another process has written.
    pub fn adopt(&mut self, service: &Service, record: &SessionRecord) {
        if let Some(session) = &mut self.session {
            session.adopt(service, record);
        }
    }

    /// Restores a session. The server's requests are numbered after `asked`: none of these ids may have been used
    /// before.
    ///
    /// Returns `None` if the service does not support the revision.
    pub fn restore(service: &Service, record: &SessionRecord, asked: i64) -> Option<Self> {
        let account = service.ledger().account(&Owner::Local);
        let session = ServerSession::restore(service, record, asked, account)?;
        Some(Self { session: Some(session), ..Self::new_session() })
    }
}

#[cfg(test)]
mod tests {
    use pintle_types::{
        Frame,
        schema::{ResourcesCapability, ServerCapabilities},
    };

    use super::*;
    use crate::server::{Arrival, Change, Inbound};

    #[test]
    fn a_session_goes_on_where_it_was_written_down() {
        let mut capabilities = ServerCapabilities::default();
        capabilities.logging = Some(Default::default());
        capabilities.resources.insert(ResourcesCapability::default()).subscribe = Some(true);
        let service = Service::new(Implementation::new("s", "0"), capabilities);
        let mut engine = Engine::new();
        assert_eq!(engine.record(), None);
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",
                "capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"note://1"}}"#,
        ] {
            let frame = Frame::parse(line.as_bytes(), 1).unwrap();
            let Inbound::Reply(reply) = engine.receive(&service, frame, &Arrival::at(0)) else {
                panic!("a reply")
            };
            assert!(reply.result.is_ok(), "{reply:?}");
        }
        let text = serde_json::to_string(&engine.record()).unwrap();
        assert_eq!(
            text,
            r#"{"revision":"2025-06-18","client":{"name":"c","version":"1"},"capabilities":{"sampling":{}},"logLevel":"error","watched":["note://1"]}"#
        );
        let record: SessionRecord = serde_json::from_str(&text).unwrap();
        let mut again = Engine::restore(&service, &record, 1000).unwrap();
        assert_eq!(again.record(), Some(record.clone()));
        assert!(again.listener().unwrap().note(&Change::Resource("note://1".into())));
        assert_eq!(again.ping().unwrap().0, 1001.into());
        let newest = service.speaks(Revision::all().take(1));
        assert!(Engine::restore(&newest, &record, 0).is_none());
    }
}

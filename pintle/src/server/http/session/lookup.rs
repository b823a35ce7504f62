//! Finds the session that a request names, in this process or in the store.

use std::sync::{Arc, atomic::Ordering};

use http::StatusCode;
use pintle_proto::{
    Revision,
    http::{Head, Refusal, check_session_version},
    server::{Call, Engine, SessionRecord},
};
use pintle_types::{Notification, RawObject, method};
use serde_json::json;

use super::{
    Session,
    conversation::no_room,
    fresh_number,
    id::SessionId,
    nodes::message::MessageBody,
    question_ids::QuestionIds,
    registry::Refused,
    store::{Renewed, SessionStore, VersionedSession},
};
use crate::{
    Ended,
    server::{
        Cx,
        core::{driver::sink::CallSink, subscription},
        http::{edge::response::store_failed, request_cx::HttpRequestCx},
    },
};

impl HttpRequestCx {
    /// Returns the session of that id, if it belongs to the principal of the request and the request names a revision that
    /// has sessions.
    pub(in crate::server::http) async fn session(
        &self,
        head: &Head<'_>,
        id: SessionId,
    ) -> Result<Arc<Session>, Refusal> {
        let session = self.find(id).await?;
        if !session.is_open() {
            return Err(Refusal::unknown_session());
        }
        check_session_version(head, self.endpoint().session)?;
        Ok(session)
    }

    /// Finds a session in this process, or one that another process has stored.
    async fn find(&self, id: SessionId) -> Result<Arc<Session>, Refusal> {
        let shared = &self.http.0;
        let found = shared.sessions.find(id);
        let found = match &shared.settings().store {
            None => found,
            Some(store) => Box::pin(self.find_stored(store, id, found)).await?,
        };
        // The answer is the same for an id of another principal, so that it reveals nothing.
        found.filter(|session| session.principal == self.principal).ok_or_else(Refusal::unknown_session)
    }

    /// Finds a session in the store. `found` is the session of that id in this process.
    async fn find_stored(
        &self,
        store: &SessionStore,
        id: SessionId,
        found: Option<Arc<Session>>,
    ) -> Result<Option<Arc<Session>>, Refusal> {
        let shared = &self.http.0;
        let (name, idle) = (id.to_string(), shared.settings().idle_session);
        let own = found.as_ref().filter(|session| session.principal == self.principal);
        let known = own.and_then(|session| session.stored_version(shared.link.gaps.load(Ordering::Acquire)));
        match store.renew(&name, known, idle).await.map_err(|error| store_failed(&error))? {
            Renewed::Unchanged => self.rejoin(found).await,
            // A session of another principal is not restored.
            Renewed::Changed(stored) if stored.session.principal.as_deref() != self.principal.as_deref() => {
                Ok(None)
            }
            Renewed::Changed(stored) => self.adopt(id, found, &stored).await,
            Renewed::Gone => {
                // Ended by another process. Only a request of its own principal ends it here too.
                if let Some(session) = found.filter(|session| session.principal == self.principal) {
                    let _ = shared.end(&session, Ended::Stopped).await;
                }
                Ok(None)
            }
        }
    }

    /// Returns the session of that id, if it is one of this process and belongs to the principal of the request.
    pub(super) fn find_here(&self, id: SessionId) -> Option<Arc<Session>> {
        self.http.0.sessions.find(id).filter(|session| session.principal == self.principal)
    }

    /// Brings a session up to date with its stored record, or restores it from the record.
    async fn adopt(
        &self,
        id: SessionId,
        found: Option<Arc<Session>>,
        stored: &VersionedSession,
    ) -> Result<Option<Arc<Session>>, Refusal> {
        let shared = &self.http.0;
        if let Some(session) = found {
            session.adopt(stored);
            return self.rejoin(Some(session)).await;
        }
        let VersionedSession { version, session: stored } = stored;
        // Only the head of this request chooses the server of a restored session, so that has to be its own.
        let is_own = match &stored.server {
            Some(name) => *name == self.snapshot.service.info().name,
            // An older record.
            None => self.settings.choice.is_single(),
        };
        if !is_own {
            return Ok(None);
        }
        let account = self.account();
        if !self.snapshot.service.has_room_for(&stored.record, &account) {
            return Err(no_room(Refused::Full));
        }
        let restored = Engine::restore(&self.snapshot.service, &stored.record, fresh_number());
        let Some(engine) = restored.map(|engine| engine.charged_to(account)) else { return Ok(None) };
        let principal = stored.principal.as_deref().map(Into::into);
        let session = Session::new(id, principal, self.server.clone(), engine);
        // Without the key of an older record, no answers are forwarded.
        let question_ids = stored.question_key.as_deref().and_then(QuestionIds::stored);
        let session = session.of(shared, question_ids).at(self.address());
        session.set_initialized();
        session.set_version(*version);
        session.number_from(fresh_number().unsigned_abs());
        // Before other requests can find it.
        if let Err(error) = session.opened(self.context.extensions()) {
            session.end(Ended::Stopped);
            return Err(Refusal::new(StatusCode::FORBIDDEN, error));
        }
        shared.join_others(&session).await.map_err(|error| store_failed(&error))?;
        shared.change_hub.add(&session.inbox);
        let session = shared.admit(Arc::new(session)).await.map_err(no_room)?;
        // Only sessions that are admitted are joined again when this process was taken for gone.
        shared.rejoin_others(&session).await.map_err(|error| store_failed(&error))?;
        shared.notify_others(id, MessageBody::Joined);
        self.watch_again(&session, &stored.record.watched);
        Ok(Some(session))
    }

    /// Has providers watch again, in a task, what a restored session watches: they know of it in the process that had it before.
    fn watch_again(&self, session: &Arc<Session>, watched: &[String]) {
        let snapshot = session.server.snapshot();
        if watched.is_empty() {
            return;
        }
        let limit = snapshot.service.bounds().watched;
        let uris: Vec<String> = watched.iter().take(limit).cloned().collect();
        let (session, context) = (session.clone(), self.context.clone());
        crate::runtime::spawn(async move {
            let subscription = |uri: &str| {
                // Nobody waits for a response, as for a notification.
                let params = RawObject::from_serialize(&json!({ "uri": uri })).ok();
                let request = Notification::new(method::RESOURCES_SUBSCRIBE.to_owned(), params);
                let principal = session.principal.as_deref();
                let call = Call::of_notification(&snapshot.service, request, session.peer(), principal);
                let sink = session.sink();
                sink.close();
                let sink = CallSink::Own(sink);
                Cx::new(call, session.server.clone(), snapshot.clone(), context.clone(), sink)
            };
            subscription::restore(uris, subscription).await;
        });
    }

    /// Returns a session of this process, after the other processes know of it if they have to be told.
    async fn rejoin(&self, found: Option<Arc<Session>>) -> Result<Option<Arc<Session>>, Refusal> {
        if let Some(session) = &found {
            self.http.0.rejoin_others(session).await.map_err(|error| store_failed(&error))?;
        }
        Ok(found)
    }

    /// Returns a session for this request only, for a client that keeps none.
    pub(in crate::server::http) fn transient_session(&self, revision: Revision) -> Option<Arc<Session>> {
        let engine = Engine::restore(&self.snapshot.service, &SessionRecord::new(revision), 0)?;
        let engine = engine.charged_to(self.account());
        let session = Session::transient(self.principal.clone(), self.server.clone(), engine);
        Some(Arc::new(session.at(self.address())))
    }
}

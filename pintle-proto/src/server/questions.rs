//! The requests of a server in a session: questions, pings.

use std::{collections::BTreeSet, fmt, sync::Arc};

use pintle_types::{
    Message, RawObject, RawValue, Request, RequestId, Response, method, schema::InputRequest,
};
use serde_json::Value;

use super::{Engine, print, session::ServerSession};
use crate::{Part, Revision, Unsayable};

/// The requests of this side.
#[derive(Debug, Default)]
pub(super) struct Questions {
    pub(super) last_id: i64,
    /// The questions and pings that the client has not answered.
    pub(super) asked: BTreeSet<i64>,
    /// The names of the questions of this process, if there are several.
    pub(super) names: Option<QuestionNames>,
}

/// The ids of the questions of one of several processes that have a session: its number in 16 hexadecimal digits, the number of the
/// question, and a tag in 16 digits, by which the others know that it was asked.
///
/// ```
/// use pintle_proto::server::QuestionNames;
///
/// let names = QuestionNames::new(0xa1, |number| number.unsigned_abs() << 8);
/// assert_eq!(names.id(2), "00000000000000a1-2-0000000000000200");
/// ```
#[derive(Clone)]
pub struct QuestionNames(Arc<NamedAsker>);

struct NamedAsker {
    number: u64,
    tag: Box<dyn Fn(i64) -> u64 + Send + Sync>,
}

impl QuestionNames {
    /// Creates the names of the questions of a process, with a function that returns the tag of a question.
    pub fn new(asker: u64, tag: impl Fn(i64) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(NamedAsker { number: asker, tag: Box::new(tag) }))
    }

    /// Returns the id of a question.
    pub fn id(&self, number: i64) -> String {
        let NamedAsker { number: asker, tag } = &*self.0;
        format!("{asker:016x}-{number}-{:016x}", tag(number))
    }

    /// Returns the number of the question with this id.
    fn number(&self, id: &str) -> Option<i64> {
        let number = id.split('-').nth(1)?.parse().ok()?;
        (self.id(number) == id).then_some(number)
    }
}

impl fmt::Debug for QuestionNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuestionNames").field("asker", &self.0.number).finish_non_exhaustive()
    }
}

impl ServerSession {
    /// Creates the request for a question, and returns it with its id.
    pub(super) fn ask(
        &mut self,
        revision: Revision,
        request: &InputRequest,
    ) -> Result<(RequestId, Vec<u8>), Unsayable> {
        let part = Part::Params(&request.method);
        let text = request.params.as_deref().map_or("{}", RawValue::get);
        let number = self.next_id();
        // A form keeps the order of its fields unless the revision has another shape for it.
        let may_need_id = request.method == method::ELICITATION_CREATE && text.contains("\"url\"");
        if !revision.lowers(part, text) && !may_need_id {
            return Ok(self.send(&request.method, text.parse().ok()));
        }
        let mut params: Value = request.params_as().unwrap_or_else(|_| Value::Object(serde_json::Map::new()));
        revision.lower(part, &mut params)?;
        if let Some(object) = params.as_object_mut()
            && may_need_id
            && object.get("mode").is_some_and(|mode| mode == "url")
        {
            // The one session revision with such questions requires an id; the newest does not.
            let id = format!("elicitation-{number}");
            object.entry("elicitationId").or_insert_with(|| id.into());
        }
        Ok(self.send(&request.method, RawObject::from_serialize(&params).ok()))
    }

    /// Creates a `ping`.
    pub(super) fn ping(&mut self) -> (RequestId, Vec<u8>) {
        self.next_id();
        self.send(method::PING, None)
    }

    /// Creates a `roots/list` request that belongs to no call.
    pub(super) fn list_roots(&mut self) -> (RequestId, Vec<u8>) {
        self.next_id();
        self.send(method::ROOTS_LIST, None)
    }

    /// Creates a `ping` whose answer nobody waits for. It is not kept: a client that never answers must not make the session grow.
    pub(super) fn keepalive(&mut self) -> Vec<u8> {
        let (_, line) = self.ping();
        let questions = self.questions();
        questions.asked.remove(&questions.last_id);
        line
    }

    fn send(&mut self, method: &str, params: Option<RawObject>) -> (RequestId, Vec<u8>) {
        let questions = self.questions();
        questions.asked.insert(questions.last_id);
        let id = match &questions.names {
            Some(names) => RequestId::String(names.id(questions.last_id).into()),
            None => RequestId::Number(questions.last_id),
        };
        let request = Request::new(id.clone(), method.to_owned(), params);
        (id, Message::Request(request).to_vec())
    }

    /// Returns whether this response answers an open request, and closes it.
    pub(super) fn answered(&mut self, response: &Response) -> bool {
        response.id.as_ref().is_some_and(|id| self.close(id))
    }

    /// Closes a request of this side. Returns whether it was open.
    fn close(&mut self, id: &RequestId) -> bool {
        let Some(questions) = &mut self.questions else { return false };
        let number = match (id, &questions.names) {
            (RequestId::Number(number), None) => Some(*number),
            (RequestId::String(text), Some(names)) => names.number(text),
            _ => None,
        };
        number.is_some_and(|number| questions.asked.remove(&number))
    }

    pub(super) fn set_names(&mut self, names: Option<QuestionNames>) {
        self.questions().names = names;
    }

    pub(super) fn questions(&mut self) -> &mut Questions {
        self.questions.get_or_insert_default()
    }

    fn next_id(&mut self) -> i64 {
        let questions = self.questions();
        questions.last_id += 1;
        questions.last_id
    }

    /// Cancels a question because its call has ended, and returns the notification to send.
    pub(super) fn abandon(&mut self, id: &RequestId) -> Option<Vec<u8>> {
        self.close(id).then(|| {
            let params = serde_json::json!({ "requestId": id, "reason": "the call has ended" });
            print::notification(self.revision(), method::NOTIFICATIONS_CANCELLED, &params)
        })
    }
}

impl Engine {
    /// Sets the ids of the questions of this process, where several have the session: so whoever receives an answer knows whose it is.
    pub fn name_questions(&mut self, names: QuestionNames) {
        self.names = Some(names.clone());
        if let Some(session) = &mut self.session {
            session.set_names(Some(names));
        }
    }

    /// Creates a `roots/list` request that belongs to no call, as after `notifications/roots/list_changed`. `None` if there is no
    /// session.
    pub fn list_roots(&mut self) -> Option<(RequestId, Vec<u8>)> {
        self.session.as_mut().map(ServerSession::list_roots)
    }

    /// Creates a request of a method that the protocol does not define, which belongs to no call. `None` if there is no session.
    pub fn custom_request(
        &mut self,
        request: &InputRequest,
    ) -> Option<Result<(RequestId, Vec<u8>), Unsayable>> {
        self.session.as_mut().map(|session| session.ask(session.revision(), request))
    }
}

#[cfg(test)]
mod tests {
    use pintle_types::schema::{Implementation, ServerCapabilities};

    use super::*;
    use crate::server::{Service, SessionRecord};

    #[test]
    fn a_question_of_one_of_several_processes_has_its_name_in_its_id() {
        let service = Service::new(Implementation::new("s", "0"), ServerCapabilities::default());
        let record = SessionRecord::new(service.newest_session().unwrap());
        let mut engine = Engine::restore(&service, &record, 0).unwrap();
        engine.name_questions(QuestionNames::new(0xa1, |number| number.unsigned_abs() + 6));
        let (id, line) = engine.ping().unwrap();
        assert_eq!(id, "00000000000000a1-1-0000000000000007".into());
        assert!(String::from_utf8(line).unwrap().contains(r#""id":"00000000000000a1-1-0000000000000007""#));
        for other in [
            RequestId::from(1),
            "00000000000000a2-1-0000000000000007".into(),
            "00000000000000a1-2-0000000000000008".into(),
            "00000000000000a1-1-0000000000000008".into(),
            "00000000000000a1-1".into(),
            "a1-1-7".into(),
        ] {
            assert!(!engine.asked(&Response::new(Some(other), Ok(RawObject::empty()))));
        }
        assert!(engine.asked(&Response::new(Some(id), Ok(RawObject::empty()))));
        let (id, _) = engine.ping().unwrap();
        assert!(engine.abandon(&id).is_some() && engine.abandon(&id).is_none());
    }
}

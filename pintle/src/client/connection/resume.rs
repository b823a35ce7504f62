use pintle_proto::client::{InputRequest, InputRequired, Rounds};
use pintle_types::RawObject;
use serde::Serialize;

use super::{Connection, call::unprintable, request::RequestBuilder};
use crate::{Error, Result, suspended_call::SuspendedCall};

impl Connection {
    /// Sends the next round of a suspended call: its params, the state of the server, and an answer to each of its input requests.
    /// Further input requests go to the handlers.
    ///
    /// An answer is the result of its request: [`ElicitResult`](pintle_types::schema::ElicitResult),
    /// [`CreateMessageResult`](pintle_types::schema::CreateMessageResult) or
    /// [`ListRootsResult`](pintle_types::schema::ListRootsResult).
    ///
    /// # Errors
    ///
    /// An input request has no answer or an answer no request, or the connection has a session.
    pub fn resume<K: AsRef<str>, A: Serialize>(
        &self,
        call: &SuspendedCall,
        answers: impl IntoIterator<Item = (K, A)>,
    ) -> Result<RequestBuilder<'_, RawObject>> {
        let revision = self.revision();
        if revision.facts().asks_by_request {
            return Err(Error::misuse(format!(
                "a suspended call cannot be resumed with a session ({}): connect with `Mode::Modern`",
                revision.as_str()
            )));
        }
        let requests = call
            .requests
            .iter()
            .map(|question| InputRequest::new(&*question.key, &*question.method, question.params.clone()));
        let asked = InputRequired::new(requests.collect(), call.state.clone(), revision);
        let answers = answers.into_iter().map(|(key, answer)| {
            let answer = RawObject::from_serialize(&answer).map_err(|error| unprintable(&error))?;
            Ok((key, answer))
        });
        let answers: Vec<_> = answers.collect::<Result<_>>()?;
        let round = Rounds::new(call.params.clone(), 1).next(&asked, answers);
        let round = round.map_err(|error| Error::Misuse(error.to_string()))?;
        Ok(self.call_raw(call.method.clone(), round.params))
    }
}

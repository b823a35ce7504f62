//! Questions of the calls of a session to its client.

use bytes::Bytes;
use pintle_proto::{inputs::AskError, server::Call};
use pintle_types::{Response, schema::InputRequest};

use super::Session;
use crate::server::core::driver::sink::AnswerSender;

impl Session {
    /// Serializes a question of a call. The answer is sent to `reply`.
    pub(in crate::server::http) fn ask(
        &self,
        call: &Call,
        request: &InputRequest,
        reply: AnswerSender,
    ) -> Option<Bytes> {
        let mut core = self.lock();
        if core.ended || reply.is_closed() {
            return None;
        }
        let error = match core.engine.ask(call, request) {
            Some(Ok((id, line))) => {
                core.busy().questions.add(id, call.ticket(), reply);
                return Some(line.into());
            }
            Some(Err(unsayable)) => AskError::Unsayable(unsayable),
            None => AskError::CallOver,
        };
        drop(core);
        // The handler may no longer wait.
        let _ = reply.send(Err(error));
        None
    }

    /// Returns whether a call waits for an answer of the client.
    pub(in crate::server::http) fn asks(&self, call: &Call) -> bool {
        let core = self.lock();
        call.ticket().zip(core.busy.as_ref()).is_some_and(|(ticket, busy)| busy.questions.has(ticket))
    }

    /// Passes an answer of the client to the call that asked.
    pub(in crate::server::http) fn answer(&self, Response { id, result, .. }: Response) {
        let reply = {
            let mut core = self.lock();
            let reply = id.zip(core.busy.as_mut()).and_then(|(id, busy)| busy.questions.take(&id));
            core.rest();
            reply
        };
        if let Some(reply) = reply {
            let _ = reply.send(result.map_err(AskError::Refused));
        }
    }

    /// Ends all questions, because answers to them may have been lost between processes.
    pub(in crate::server::http) fn lose_answers(&self) {
        let replies = {
            let mut core = self.lock();
            let Some(busy) = &mut core.busy else { return };
            let (ids, replies): (Vec<_>, Vec<_>) = busy.questions.take_all().into_iter().unzip();
            // The calls end, and the client is not asked any more: it sees that by their errors.
            let _ = core.take_back(&ids);
            core.rest();
            replies
        };
        for reply in replies {
            let _ = reply.send(Err(AskError::AnswerLost));
        }
    }

    /// Cancels the questions whose handlers no longer wait. Returns the cancellations to send.
    pub(in crate::server::http) fn give_up(&self) -> Vec<Vec<u8>> {
        let mut core = self.lock();
        let ids = core.busy.as_mut().map(|busy| busy.questions.given_up()).unwrap_or_default();
        let lines = core.take_back(&ids);
        core.rest();
        lines
    }

    /// Returns whether a call waits for an answer, and the client has no open stream.
    pub(in crate::server::http) fn is_deserted(&self) -> bool {
        // Read without the lock of the session: a channel locks the session while it is locked itself.
        let channels: Vec<_> = match &self.lock().busy {
            Some(busy)
                if !busy.questions.is_empty()
                    && busy.get_streams.is_empty()
                    && busy.remote_get_stream.is_none() =>
            {
                busy.channels.values().cloned().collect()
            }
            _ => return false,
        };
        !channels.iter().any(|channel| channel.is_read())
    }
}

//! What clients answer, and the turns of the calls that asked.

use std::collections::VecDeque;

use pintle_proto::{inputs::AskError, server::Ticket};
use pintle_types::{RawObject, Response};

use super::StreamConnection;
use crate::server::call::sink::AnswerSender;

/// Answers that have come while as many calls run as may. There are no more than questions.
pub(crate) type Answers = VecDeque<(Ticket, AnswerSender, Result<RawObject, AskError>)>;

impl StreamConnection {
    /// How many calls run. One that waits for its client does not.
    pub(super) fn active(&self) -> usize {
        let returning = self.answers.iter().filter(|(ticket, ..)| !self.questions.has(*ticket)).count();
        self.running.len().saturating_sub(self.questions.calls() + returning)
    }

    pub(crate) fn answer(&mut self, Response { id, result, .. }: Response) {
        let Some(id) = id else { return };
        let asker = self.questions.asker(&id);
        let Some(reply) = self.questions.take(&id) else { return };
        let result = result.map_err(AskError::Refused);
        match asker {
            // It runs again with the last of its answers, if it may.
            Some(ticket) if !self.questions.has(ticket) => {
                self.answers.push_back((ticket, reply, result));
                self.hand_out_answers();
            }
            // The one who asked may be gone.
            _ => drop(reply.send(result)),
        }
    }

    /// Lets calls go on whose clients have answered, as far as they may run.
    pub(super) fn hand_out_answers(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let limit = self.server.snapshot().settings.running;
        while self.active() < limit {
            let Some((_, reply, result)) = self.answers.pop_front() else { break };
            let _ = reply.send(result);
        }
        // Those that were given up meanwhile take nobody's place.
        self.answers.retain(|(_, reply, _)| !reply.is_closed());
    }
}

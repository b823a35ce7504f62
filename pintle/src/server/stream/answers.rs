//! Questions to clients and their answers, and the concurrency limit of the calls that asked.

use std::collections::VecDeque;

use pintle_proto::{
    inputs::AskError,
    server::{Call, Ticket},
};
use pintle_types::{RawObject, RequestId, Response, schema::InputRequest};

use super::{RunningCall, StreamConnection};
use crate::server::core::driver::sink::AnswerSender;

/// Answers that were received while the concurrency limit was reached. There are at most as many as questions.
pub(crate) type Answers = VecDeque<(Ticket, AnswerSender, Result<RawObject, AskError>)>;

impl StreamConnection {
    pub(super) fn ask(&mut self, ticket: Option<Ticket>, request: &InputRequest, reply: AnswerSender) {
        // A call that completed with its first poll has no handler to answer.
        let Some(RunningCall { call, .. }) = ticket.and_then(|ticket| self.running.get(&ticket)) else {
            return;
        };
        // In each case the handler may no longer wait.
        match self.engine.ask(call, request) {
            Some(Ok((id, line))) => {
                self.send(line.into());
                self.questions.add(id, ticket, reply);
            }
            Some(Err(unsayable)) => drop(reply.send(Err(AskError::Unsayable(unsayable)))),
            None => drop(reply.send(Err(AskError::CallOver))),
        }
    }

    /// Cancels the questions of a call that is over.
    pub(super) fn over(&mut self, call: &Call) {
        if let Some(ticket) = call.ticket() {
            let ids = self.questions.of(ticket);
            self.take_back(&ids);
        }
    }

    pub(super) fn take_back(&mut self, questions: &[RequestId]) {
        for id in questions {
            if let Some(line) = self.engine.abandon(id) {
                self.send(line.into());
            }
        }
    }

    /// Returns the number of running calls, without those that wait for their client.
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
            // With its last answer the call runs again, within the concurrency limit.
            Some(ticket) if !self.questions.has(ticket) => {
                self.answers.push_back((ticket, reply, result));
                self.hand_out_answers();
            }
            // The handler may no longer wait.
            _ => drop(reply.send(result)),
        }
    }

    /// Delivers answers to calls, within the concurrency limit.
    pub(super) fn hand_out_answers(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let limit = self.server.snapshot().settings.calls.running;
        while self.active() < limit {
            let Some((_, reply, result)) = self.answers.pop_front() else { break };
            let _ = reply.send(result);
        }
        // Abandoned questions hold no slot.
        self.answers.retain(|(_, reply, _)| !reply.is_closed());
    }
}

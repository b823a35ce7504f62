use std::collections::HashMap;

use pintle_proto::server::Ticket;
use pintle_types::RequestId;

use super::sink::AnswerSender;

/// The questions that were sent and not answered yet, and the calls that asked them.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions {
    replies: HashMap<RequestId, (Option<Ticket>, AnswerSender)>,
    of_call: HashMap<Ticket, Vec<RequestId>>,
}

impl OpenQuestions {
    pub(crate) fn add(&mut self, id: RequestId, ticket: Option<Ticket>, reply: AnswerSender) {
        if let Some(ticket) = ticket {
            self.of_call.entry(ticket).or_default().push(id.clone());
        }
        self.replies.insert(id, (ticket, reply));
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Returns whether this call waits for an answer.
    pub(crate) fn has(&self, ticket: Ticket) -> bool {
        self.of_call.contains_key(&ticket)
    }

    /// Returns the number of calls that wait for an answer.
    pub(crate) fn calls(&self) -> usize {
        self.of_call.len()
    }

    /// Returns the call that asked a question.
    pub(crate) fn asker(&self, id: &RequestId) -> Option<Ticket> {
        self.replies.get(id)?.0
    }

    /// Removes a question that was answered.
    pub(crate) fn take(&mut self, id: &RequestId) -> Option<AnswerSender> {
        let (ticket, reply) = self.replies.remove(id)?;
        if let Some(ticket) = ticket
            && let Some(ids) = self.of_call.get_mut(&ticket)
        {
            ids.retain(|other| other != id);
            if ids.is_empty() {
                self.of_call.remove(&ticket);
            }
        }
        Some(reply)
    }

    /// Removes the questions of a call that is over. Dropping their senders ends them with an error.
    pub(crate) fn of(&mut self, ticket: Ticket) -> Vec<RequestId> {
        if self.of_call.is_empty() {
            return Vec::new();
        }
        let ids = self.of_call.remove(&ticket).unwrap_or_default();
        for id in &ids {
            self.replies.remove(id);
        }
        ids
    }

    /// Removes the questions whose handlers no longer wait.
    pub(crate) fn given_up(&mut self) -> Vec<RequestId> {
        let gone = self.replies.iter().filter(|(_, (_, reply))| reply.is_closed());
        let gone: Vec<_> = gone.map(|(id, _)| id.clone()).collect();
        for id in &gone {
            self.take(id);
        }
        gone
    }

    /// Removes all questions, with those who wait for their answers.
    #[cfg(feature = "http-server")]
    pub(crate) fn take_all(&mut self) -> Vec<(RequestId, AnswerSender)> {
        self.of_call.clear();
        std::mem::take(&mut self.replies).into_iter().map(|(id, (_, reply))| (id, reply)).collect()
    }

    /// Removes all questions.
    pub(crate) fn all(&mut self) -> Vec<RequestId> {
        self.of_call.clear();
        std::mem::take(&mut self.replies).into_keys().collect()
    }
}

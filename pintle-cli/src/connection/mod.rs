//! The connection of a verb: its own, or the one that the lines of `repl` share.

mod question_slot;

use std::ops::Deref;

use pintle::Connection;

pub(crate) use question_slot::{AnswerFuture, Answers, QuestionSlot, SlotGuard};

/// A connection that verbs use one after the other, and where its questions go.
#[derive(Clone, Debug)]
pub(crate) struct SharedConnection {
    pub(crate) connection: Connection,
    pub(crate) questions: QuestionSlot,
}

/// The connection of a verb.
#[derive(Debug)]
pub(crate) struct VerbConnection {
    connection: Connection,
    questions: Option<QuestionSlot>,
}

impl VerbConnection {
    /// Returns the slot for what answers questions, if the connection is shared.
    pub(crate) fn questions(&self) -> Option<&QuestionSlot> {
        self.questions.as_ref()
    }

    /// Closes the connection, unless it is shared.
    pub(crate) async fn close(&self) {
        if self.questions.is_none() {
            self.connection.close().await;
        }
    }
}

impl Deref for VerbConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl From<Connection> for VerbConnection {
    fn from(connection: Connection) -> Self {
        Self { connection, questions: None }
    }
}

impl From<SharedConnection> for VerbConnection {
    fn from(shared: SharedConnection) -> Self {
        Self { connection: shared.connection, questions: Some(shared.questions) }
    }
}

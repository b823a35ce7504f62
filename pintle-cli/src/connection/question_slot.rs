use std::{fmt, pin::Pin, sync::Arc};

use pintle::{
    client::{Answer, ElicitUrl, Question},
    types::{RpcError, schema::ElicitFormParams},
};
use tokio::sync::watch;

/// The future answer to a question.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Result<Answer, RpcError>> + Send>>;

/// Answers the questions of a server.
pub(crate) trait Answers: Send + Sync {
    fn form(&self, question: Question<ElicitFormParams>) -> AnswerFuture;
    fn page(&self, question: Question<ElicitUrl>) -> AnswerFuture;
}

/// The slot for what answers the questions on a shared connection: the verb that runs.
#[derive(Clone, Default)]
pub(crate) struct QuestionSlot(Arc<watch::Sender<Option<Arc<dyn Answers>>>>);

/// Empties the slot when it is dropped.
pub(crate) struct SlotGuard(QuestionSlot);

impl QuestionSlot {
    /// Has this answer questions until the guard is dropped.
    pub(crate) fn fill(&self, answers: Arc<dyn Answers>) -> SlotGuard {
        self.0.send_replace(Some(answers));
        SlotGuard(self.clone())
    }

    /// Returns the answer of the verb that runs. Its end cancels the question. `None` if no verb runs.
    pub(crate) async fn answer(
        &self,
        ask: impl FnOnce(&dyn Answers) -> AnswerFuture,
    ) -> Option<Result<Answer, RpcError>> {
        let mut current = self.0.subscribe();
        let answers = current.borrow_and_update().clone()?;
        tokio::select! {
            biased;
            _ = current.changed() => Some(Ok(Answer::Cancel)),
            answer = ask(&*answers) => Some(answer),
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.0.0.send_replace(None);
    }
}

impl fmt::Debug for QuestionSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuestionSlot").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never answers a form, and declines pages.
    struct Undecided;

    impl Answers for Undecided {
        fn form(&self, _: Question<ElicitFormParams>) -> AnswerFuture {
            Box::pin(std::future::pending())
        }

        fn page(&self, _: Question<ElicitUrl>) -> AnswerFuture {
            Box::pin(async { Ok(Answer::Decline) })
        }
    }

    #[tokio::test]
    async fn the_end_of_a_verb_cancels_its_questions() {
        let slot = QuestionSlot::default();
        let pending = |_: &dyn Answers| -> AnswerFuture { Box::pin(std::future::pending()) };
        assert!(slot.answer(pending).await.is_none());
        let guard = slot.fill(Arc::new(Undecided));
        let declined = slot.answer(|_| Box::pin(async { Ok(Answer::Decline) })).await;
        assert!(matches!(declined, Some(Ok(Answer::Decline))));
        let asked = slot.answer(pending);
        tokio::pin!(asked);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, &mut asked).await.is_err());
        drop(guard);
        assert!(matches!(asked.await, Some(Ok(Answer::Cancel))));
    }
}

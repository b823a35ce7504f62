use pintle::{
    Client,
    client::{Answer, Question},
};
use tokio::sync::mpsc;

use super::asked::Asked;
use crate::failure::Failure;

/// The questions that a connection receives.
pub(crate) struct Questions(mpsc::Receiver<Asked>);

impl Questions {
    /// Adds handlers to a client that collect questions and leave them unanswered.
    pub(crate) fn of(client: Client) -> (Client, Self) {
        // The first one ends the verb; others wait in vain.
        let (sender, receiver) = mpsc::channel(1);
        let forms = sender.clone();
        let client = client
            .on_elicit(move |Question { server, params, .. }| {
                ask(forms.clone(), Asked::new(server.as_deref(), params.message.clone(), &params))
            })
            .on_elicit_url(move |Question { server, params, .. }| {
                let message = format!("{} {}", params.message, params.url);
                ask(sender.clone(), Asked::new(server.as_deref(), message, &params.params))
            });
        (client, Self(receiver))
    }

    /// Runs a call until it is done or the server asks. The call is dropped then, which cancels it. `next` is what to type.
    pub(crate) async fn unless_asked<T>(
        &mut self,
        call: impl Future<Output = Result<T, Failure>>,
        next: &str,
    ) -> Result<T, Failure> {
        tokio::select! {
            // What is asked while the result arrives is not needed any more.
            biased;
            done = call => done,
            Some(asked) = self.0.recv() => Err(asked.into_failure(next)),
        }
    }
}

async fn ask(to: mpsc::Sender<Asked>, asked: Asked) -> Answer {
    // If it is closed, the verb has ended.
    let _ = to.send(asked).await;
    std::future::pending().await
}

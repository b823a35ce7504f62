use std::{convert::Infallible, io, sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use crate::{output::Output, verbs::gateway::health::LastAnswer};

/// The time between two looks at the store.
const INTERVAL: Duration = Duration::from_secs(5);
/// The time that the store has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// The state of the shared store. A clone is of the same store.
#[derive(Clone, Default)]
pub(super) struct StoreHealth(Arc<LastAnswer>);

impl StoreHealth {
    /// Returns why the store cannot be used.
    pub(super) fn outage(&self) -> Option<String> {
        self.0.outage().map(|outage| outage.reason)
    }

    /// Looks at the store now and then, and logs when it is lost and when it is there again.
    pub(super) async fn watch<F>(&self, ping: impl Fn() -> F, output: &Output) -> Infallible
    where
        F: Future<Output = io::Result<()>>,
    {
        loop {
            sleep(INTERVAL).await;
            let late = || Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer"));
            let answered = timeout(ANSWER_TIMEOUT, ping()).await.unwrap_or_else(|_| late());
            match self.0.record(answered.map_err(|error| error.to_string())) {
                Some(Ok(time)) => {
                    let seconds = time.as_secs();
                    output.note(format!("the Redis of the gateway is there again, after {seconds} s"));
                }
                Some(Err(reason)) => output.warning(format!(
                    "the Redis of the gateway cannot be used: {reason}; requests with sessions get 503 until it is there again"
                )),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_lost_and_back_is_logged_once_each() {
        #[derive(Clone, Copy)]
        enum Store {
            Answers,
            Refuses,
            Hangs,
        }

        let (store, health) = (Cell::new(Store::Answers), StoreHealth::default());
        let ping = || async {
            match store.get() {
                Store::Answers => Ok(()),
                Store::Refuses => Err(io::Error::other("nobody listens")),
                Store::Hangs => std::future::pending().await,
            }
        };
        let (output, printed) = Output::kept();
        let steps = async {
            sleep(3 * INTERVAL).await;
            assert_eq!(health.outage(), None);
            store.set(Store::Refuses);
            sleep(3 * INTERVAL).await;
            assert_eq!(health.outage().as_deref(), Some("nobody listens"));
            store.set(Store::Hangs);
            sleep(3 * INTERVAL + ANSWER_TIMEOUT).await;
            assert_eq!(health.outage().as_deref(), Some("it does not answer"));
            store.set(Store::Answers);
            sleep(3 * INTERVAL).await;
            assert_eq!(health.outage(), None);
        };
        tokio::select! {
            never = health.watch(ping, &output) => match never {},
            () = steps => {}
        }
        let printed = printed();
        for line in ["cannot be used: nobody listens", "is there again, after"] {
            assert_eq!(printed.matches(line).count(), 1, "{printed}");
        }
        assert_eq!(printed.lines().count(), 2, "{printed}");
    }
}

//! Runs the properties of a conformance kit: of a transport, an event log, a session store or a replay guard.

use std::{fmt, future::Future, io, pin::Pin, time::Duration};

use tokio::time::timeout;

/// A property that does not hold.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Broken {
    /// The property, as a sentence.
    pub property: &'static str,
    /// The observed behaviour.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.what)
    }
}

impl std::error::Error for Broken {}

/// The result of a property: what was seen instead of it.
pub type PropertyResult = Result<(), String>;

/// A property of a subject: the sentence that should be true, and its check.
pub type Property<S> = (&'static str, fn(S) -> Pin<Box<dyn Future<Output = PropertyResult> + Send>>);

/// The time after which a check is taken to hang. The longest ones have hundreds of requests, and may run on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Checks each property on a subject that `open` returns.
pub async fn check<S, F>(properties: &[Property<S>], open: impl Fn() -> F) -> Result<(), Vec<Broken>>
where
    F: Future<Output = io::Result<S>>,
{
    let mut broken = Vec::new();
    for &(property, run) in properties {
        let checked = match open().await {
            Ok(subject) => timeout(TIMEOUT, run(subject))
                .await
                .unwrap_or_else(|_| Err(format!("it hangs: nothing after {TIMEOUT:?}"))),
            Err(error) => Err(format!("not opened: {error}")),
        };
        broken.extend(checked.err().map(|what| Broken { property, what }));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle_types::RpcError;

use super::Service;

/// The memory of all sessions and subscriptions of a service, in bytes, not counting the allowance of each.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicUsize);

/// The memory of one session or subscription. It is released on drop.
#[derive(Debug, Default)]
pub(super) struct Charge {
    budget: Option<Arc<Budget>>,
    bytes: usize,
}

/// The bytes that each may use regardless of the others. Nearly all need less, so those that use much compete only with
/// each other.
const ALLOWANCE: usize = 4096;

/// The limit that was exceeded.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum TooMuch {
    /// The limit of one session or subscription.
    Own,
    /// The limit of all together.
    Total,
}

impl Charge {
    /// Creates an empty charge.
    pub(super) fn new(service: &Service) -> Self {
        Self { budget: Some(service.budget().clone()), bytes: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the size, if the limits allow it.
    pub(super) fn set(&mut self, bytes: usize, service: &Service) -> Result<(), TooMuch> {
        let limits = service.bounds();
        if bytes > self.bytes && bytes > limits.session_bytes {
            return Err(TooMuch::Own);
        }
        let (before, after) = (shared(self.bytes), shared(bytes));
        if let Some(Budget(used)) = self.budget.as_deref() {
            if after > before {
                let fits = |used: usize| {
                    used.checked_add(after - before).filter(|used| *used <= limits.sessions_bytes)
                };
                used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| TooMuch::Total)?;
            } else {
                used.fetch_sub(before - after, Ordering::Relaxed);
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Sets the size without checking the limits, for what was admitted before.
    pub(super) fn force(&mut self, bytes: usize) {
        if let Some(Budget(used)) = self.budget.as_deref() {
            used.fetch_add(shared(bytes), Ordering::Relaxed);
            used.fetch_sub(shared(self.bytes), Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(Budget(used)) = self.budget.as_deref() {
            used.fetch_sub(shared(self.bytes), Ordering::Relaxed);
        }
    }
}

impl TooMuch {
    /// Returns the error to respond with. `own` tells the client what to do if its own limit was exceeded.
    pub(super) fn error(&self, service: &Service, own: &str) -> RpcError {
        match self {
            Self::Own => {
                let limit = service.bounds().session_bytes;
                RpcError::invalid_params(format!(
                    "the session or subscription would take more than {limit} bytes: {own}"
                ))
            }
            Self::Total => RpcError::overloaded(
                "the server has reached its memory limit for sessions and subscriptions: send less, or try again later",
                RETRY_MS,
            ),
        }
    }
}

const RETRY_MS: u64 = 5000;

/// Returns the part of a size that counts towards the shared limit.
fn shared(bytes: usize) -> usize {
    bytes.saturating_sub(ALLOWANCE)
}

/// Estimates the memory of a parsed JSON text, in bytes: a short text can become a large tree.
pub(super) fn weight(text: &str) -> usize {
    let (mut values, mut objects) = (0, 0);
    for byte in text.bytes() {
        match byte {
            b',' | b':' | b'[' => values += 1,
            b'{' => objects += 1,
            _ => {}
        }
    }
    text.len() + VALUE * values + OBJECT * usize::saturating_sub(objects, TYPED)
}

/// The size of a value in its array or map node.
const VALUE: usize = 64;
/// The size of the first node of a map.
const OBJECT: usize = 640;
/// The number of objects in a client's description that are structs rather than maps.
const TYPED: usize = 8;

/// Estimates the memory of a watched resource, in bytes.
pub(super) fn watched(uri: &str) -> usize {
    uri.len() + VALUE
}

#[cfg(test)]
mod tests {
    use pintle_types::schema::{Implementation, ServerCapabilities};

    use super::*;

    fn service(session: usize, total: usize) -> Service {
        let mut limits = crate::Limits::default();
        (limits.session_bytes, limits.sessions_bytes) = (session, total);
        Service::new(Implementation::new("s", "0"), ServerCapabilities::default()).limits(limits)
    }

    fn used(service: &Service) -> usize {
        service.budget().0.load(Ordering::Relaxed)
    }

    #[test]
    fn who_keeps_much_is_in_the_way_of_those_who_do_too_and_of_nobody_else() {
        let service = service(3 * ALLOWANCE, 3 * ALLOWANCE);
        let mut large = Charge::new(&service);
        assert_eq!(large.set(3 * ALLOWANCE + 1, &service), Err(TooMuch::Own));
        assert_eq!(large.set(3 * ALLOWANCE, &service), Ok(()));
        let mut second = Charge::new(&service);
        assert_eq!(second.set(3 * ALLOWANCE, &service), Err(TooMuch::Total));
        assert_eq!(second.set(ALLOWANCE, &service), Ok(()), "that much each has");
        assert_eq!(second.set(2 * ALLOWANCE, &service), Ok(()));
        assert_eq!(used(&service), 3 * ALLOWANCE);
        drop(large);
        assert_eq!(second.set(3 * ALLOWANCE, &service), Ok(()));
        assert_eq!(second.set(10, &service), Ok(()));
        assert_eq!(used(&service), 0);
        second.force(100 * ALLOWANCE);
        assert_eq!(second.set(100 * ALLOWANCE, &service), Ok(()), "as much as before is never too much");
        assert_eq!(second.set(99 * ALLOWANCE, &service), Ok(()), "less is never too much");
        drop(second);
        assert_eq!(used(&service), 0);
    }

    #[test]
    fn a_short_text_that_becomes_a_large_tree_is_heavy_and_a_client_as_most_are_is_not() {
        let most = r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},
            "elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"an-editor","title":"An Editor","version":"1.2.3"}}"#;
        assert!(weight(most) < ALLOWANCE / 2, "{}", weight(most));
        assert!(weight(&"[],".repeat(1000)) > 64_000);
        assert!(weight(&r#""a":{"b":0},"#.repeat(100)) > 60_000);
    }
}

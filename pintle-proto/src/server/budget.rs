use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle_types::RpcError;

use super::Service;

/// What all sessions and subscriptions of a service make it keep, in bytes, beyond what each has anyway.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicUsize);

/// What one session or subscription makes a service keep. It is given back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Charge {
    budget: Option<Arc<Budget>>,
    bytes: usize,
}

/// So many bytes each may keep whatever the others do. It is more than nearly all need, so that those who keep much are in
/// the way of nobody but each other.
const ALLOWANCE: usize = 4096;

/// Why something cannot be kept.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum TooMuch {
    /// It is more than one may keep.
    Own,
    /// The others keep too much at the moment.
    Total,
}

impl Charge {
    /// Keeps nothing yet.
    pub(super) fn new(service: &Service) -> Self {
        Self { budget: Some(service.budget().clone()), bytes: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps so much from here on, if it is not too much.
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

    /// The same, whatever there is: for what has been let in already.
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
    /// As an error, with what to do if it is more than one may keep.
    pub(super) fn error(&self, service: &Service, own: &str) -> RpcError {
        match self {
            Self::Own => {
                let limit = service.bounds().session_bytes;
                RpcError::invalid_params(format!("more than {limit} bytes would have to be kept: {own}"))
            }
            Self::Total => RpcError::overloaded(
                "the server keeps as much for its clients as it may: send less, or try again later",
                RETRY_MS,
            ),
        }
    }
}

const RETRY_MS: u64 = 5000;

/// How much of this counts with what the others keep.
fn shared(bytes: usize) -> usize {
    bytes.saturating_sub(ALLOWANCE)
}

/// About how many bytes a JSON text takes once it is read: a short text can become a large tree.
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

/// A value, in the array or the node that it lies in.
const VALUE: usize = 64;
/// The first node of a map.
const OBJECT: usize = 640;
/// So many objects of what a client says of itself have places of their own.
const TYPED: usize = 8;

/// About how many bytes a watched resource takes.
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

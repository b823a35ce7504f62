use pintle_types::RpcError;

use super::Service;
use crate::ledger::{Charge, Held};

/// Sets what a session or subscription is charged for, if the limits allow it. `own` tells the client what to do if its own limit
/// is exceeded.
pub(super) fn charge(
    charge: &mut Charge,
    bytes: usize,
    service: &Service,
    own: &str,
) -> Result<(), RpcError> {
    if bytes > charge.bytes() {
        check(bytes, service, own)?;
    }
    let ceiling = service.bounds().ceiling(Held::Session);
    charge.set(bytes, ceiling).map_err(|full| full.error(RETRY_MS))
}

/// Refuses what is too much for one session or subscription.
pub(super) fn check(bytes: usize, service: &Service, own: &str) -> Result<(), RpcError> {
    let limit = service.bounds().session_bytes;
    if bytes <= limit {
        return Ok(());
    }
    let message = format!("the session or subscription would take more than {limit} bytes: {own}");
    Err(RpcError::invalid_params(message))
}

pub(super) const RETRY_MS: u64 = 5000;

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
    use super::*;
    use crate::ledger::FREE;

    #[test]
    fn a_short_text_that_becomes_a_large_tree_is_heavy_and_a_client_as_most_are_is_not() {
        let most = r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},
            "elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"an-editor","title":"An Editor","version":"1.2.3"}}"#;
        assert!(weight(most) < FREE / 2, "{}", weight(most));
        assert!(weight(&"[],".repeat(1000)) > 64_000);
        assert!(weight(&r#""a":{"b":0},"#.repeat(100)) > 60_000);
    }
}

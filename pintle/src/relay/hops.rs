//! The relays that a request has passed. A request that comes back to one of them is refused.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_types::{RawObject, RpcError};

use super::{Relay, meta::with_meta};
use crate::server::{Cx, call::random};

/// The key of `_meta`: the ids of the relays, in order.
const META: &str = "dev.pintle/relays";
/// The limit of relays that a request passes.
const MAX_HOPS: usize = 16;

/// The identity of a relay, among those of all processes.
#[derive(Debug, Default)]
pub(super) struct RelayIdentity {
    id: OnceLock<Box<str>>,
    /// Whether a request has come back.
    is_in_loop: AtomicBool,
}

impl RelayIdentity {
    fn id(&self) -> Result<&str, RpcError> {
        if let Some(id) = self.id.get() {
            return Ok(id);
        }
        let id = random::bytes::<12>().map_err(|_| RpcError::internal("the system has no random numbers"))?;
        Ok(self.id.get_or_init(|| URL_SAFE_NO_PAD.encode(id).into()))
    }

    /// Whether the server behind relays to this one: its changes are those of this one.
    pub(super) fn is_in_loop(&self) -> bool {
        self.is_in_loop.load(Ordering::Relaxed)
    }
}

/// Adds a relay to those that a request has passed. `params` are those that it sends for the call.
pub(super) fn pass(relay: &Relay, cx: &Cx, params: &RawObject) -> Result<RawObject, RpcError> {
    let identity = relay.inner.upstream.identity();
    let id = identity.id()?;
    let meta: Option<RawObject> = cx.params().decode_member("_meta").ok().flatten();
    let passed = meta.as_ref().map(|meta| meta.decode_member::<Vec<Box<str>>>(META)).transpose();
    let passed = passed.map_err(|_| {
        RpcError::invalid_params(format!("`{META}` of `_meta` is not a list of ids: leave it out"))
    })?;
    let mut passed = passed.flatten().unwrap_or_default();
    if passed.iter().any(|other| **other == *id) {
        identity.is_in_loop.store(true, Ordering::Relaxed);
        return Err(RpcError::internal(format!(
            "the request came back to the relay to `{}`: the servers relay to each other in a circle; remove one of these relays",
            relay.backend()
        )));
    }
    if passed.len() >= MAX_HOPS {
        return Err(RpcError::internal(format!(
            "the request has passed {MAX_HOPS} relays before the one to `{}`, which is the limit: remove some of them",
            relay.backend()
        )));
    }
    passed.push(id.into());
    Ok(with_meta(params, META, &passed))
}

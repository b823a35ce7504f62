//! The relays that a request has passed. A request that comes back to one of them is refused.
//!
//! A relay that is a whole server (`Relay::into_server`) forwards every method that the protocol does not define, with the extensions that the
//! client declared. Beside other providers, the server chooses one for a method (`server/core/provider/methods.rs` of `pintle`).

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle::{
    server::Cx,
    types::{RawObject, RpcError},
};

use super::meta::with_meta;
use crate::random;

/// The key of `_meta`: the ids of the relays, in order.
const META: &str = "dev.pintle/relays";
/// The limit of relays that a request passes.
const MAX_HOPS: usize = 16;

/// The identity of a relay, among those of all processes.
#[derive(Debug, Default)]
pub(crate) struct RelayIdentity {
    id: OnceLock<RelayId>,
    /// Whether a request has come back.
    is_in_loop: AtomicBool,
}

/// The id of a relay.
#[derive(Debug)]
struct RelayId {
    id: Box<str>,
    /// The `_meta` of requests that have passed no other relay.
    first: RawObject,
}

impl RelayId {
    fn new(id: [u8; 12]) -> Self {
        let id = URL_SAFE_NO_PAD.encode(id);
        let first = with_meta(&RawObject::empty(), META, &[&id]).object_member("_meta").ok().flatten();
        Self { id: id.into(), first: first.unwrap_or_default() }
    }
}

impl RelayIdentity {
    fn id(&self) -> Result<&RelayId, RpcError> {
        if let Some(id) = self.id.get() {
            return Ok(id);
        }
        let id =
            random::bytes().map_err(|_| RpcError::internal("the system's random number generator failed"))?;
        Ok(self.id.get_or_init(|| RelayId::new(id)))
    }

    /// Whether the server behind relays to this one: its changes are those of this one.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.is_in_loop.load(Ordering::Relaxed)
    }
}

impl RelayIdentity {
    /// Adds the relay to those that a request has passed. `params` are those that it sends for the call, to a server of this name.
    pub(crate) fn pass(
        &self,
        cx: &Cx,
        params: &RawObject,
        backend: impl Fn() -> String,
    ) -> Result<RawObject, RpcError> {
        let RelayId { id, first } = self.id()?;
        let meta = cx.params().object_member("_meta").ok().flatten();
        if meta.is_none() && params.get("_meta").is_none() {
            return Ok(params.with_object("_meta", first));
        }
        let passed = meta.as_ref().map(|meta| meta.decode_member::<Vec<Box<str>>>(META)).transpose();
        let passed = passed.map_err(|_| {
            RpcError::invalid_params(format!("`{META}` of `_meta` is not a list of ids: leave it out"))
        })?;
        let mut passed = passed.flatten().unwrap_or_default();
        if passed.contains(id) {
            self.is_in_loop.store(true, Ordering::Relaxed);
            return Err(RpcError::internal(format!(
                "the request came back to the relay to `{}`: the servers relay to each other in a circle; remove one of these relays",
                backend()
            )));
        }
        if passed.len() >= MAX_HOPS {
            return Err(RpcError::internal(format!(
                "the request has passed {MAX_HOPS} relays before the one to `{}`, which is the limit: remove some of them",
                backend()
            )));
        }
        passed.push(id.clone());
        Ok(with_meta(params, META, &passed))
    }
}

//! Requests of servers whose methods the protocol does not define.

use std::{future::Future, sync::Arc};

use pintle_types::{RawObject, RpcError};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    answer::{Asker, Question},
    handlers::{BoxFuture, decode, print},
};

/// A handler of a method that the protocol does not define.
pub(in crate::client) type CustomHandler =
    Arc<dyn Fn(Asker, &RawObject) -> Result<BoxFuture<Result<RawObject, RpcError>>, RpcError> + Send + Sync>;

/// Boxes a handler of a method that the protocol does not define.
pub(in crate::client) fn custom_handler<P, R, F, Fut>(handle: F) -> CustomHandler
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize,
    F: Fn(Question<P>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
{
    let handle = Arc::new(handle);
    Arc::new(move |asker, params| {
        let params: P = decode(&params.without(&["_meta"]))?;
        let handle = handle.clone();
        // Called inside, so that a panic before the first `await` is caught like any other.
        Ok(Box::pin(async move { print(&handle(Question::new(asker, params)).await?) }))
    })
}

use std::{future::Future, pin::Pin, sync::Arc};

use pintle_types::{RawObject, RpcError};
use serde::{Serialize, de::DeserializeOwned};

use super::Cx;

/// A method of the application's own, or of an extension.
#[derive(Clone)]
pub(crate) struct CustomMethod(pub(crate) Arc<dyn Fn(Cx) -> Answering + Send + Sync>);

type Answering = Pin<Box<dyn Future<Output = Result<RawObject, RpcError>> + Send>>;

impl CustomMethod {
    pub(crate) fn new<P, R, F, Fut>(handler: F) -> Self
    where
        P: DeserializeOwned + Send,
        R: Serialize,
        F: Fn(Cx, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
    {
        Self(Arc::new(move |cx| {
            let params = cx.params().without(&["_meta"]).decode::<P>();
            let running = params.map(|params| handler(cx.clone(), params));
            Box::pin(async move {
                let running = running
                    .map_err(|error| RpcError::invalid_params(format!("`{}`: {error}", cx.method())))?;
                let result = running.await?;
                RawObject::from_serialize(&result).map_err(|error| RpcError::internal(error.to_string()))
            })
        }))
    }
}

//! Methods whose feature is not enabled. They cannot be called: the compiler's error names the feature.

use std::future::{Ready, ready};

use crate::{
    Error, Result,
    server::{Listen, Server, Serving},
};

/// The feature `http-server`. Nothing implements it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "servers over HTTP need the feature `http-server` of `pintle`",
    label = "needs the feature `http-server`",
    note = "add it in `Cargo.toml`, to the entry of `pintle`: `features = [\"http-server\"]`"
)]
pub trait HttpServerFeature {}

impl Server {
    /// Needs the feature `http-server`.
    #[doc(hidden)]
    pub fn serve_http<A: HttpServerFeature>(&self, _: A) -> Ready<Result<Serving>> {
        ready(Err(Error::misuse("servers over HTTP need the feature `http-server`: enable it")))
    }
}

impl Listen {
    /// Needs the feature `http-server`.
    #[doc(hidden)]
    pub fn http<A: HttpServerFeature>(_: A) -> Self {
        Self::from_args()
    }
}

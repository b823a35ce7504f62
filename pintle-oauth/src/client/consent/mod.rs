//! The user's part of a login.

pub(crate) mod callback;
pub(crate) mod loopback;
pub(crate) mod paste;

use std::{future::Future, pin::Pin};

use pintle::Result;

/// The user's part of a login: go to an address, and come back.
///
/// [`Loopback`](loopback::Loopback) opens a browser and listens where it comes back to; [`Paste`](paste::Paste) shows the
/// address and has the other one pasted. An application with a web view of its own brings its own.
pub trait Consent: Send + Sync + 'static {
    /// One login.
    type Visit: Visit;

    /// Gets ready for a login. `before` is the address that the user was sent back to the last time: where that can be
    /// the same again, the client need not be registered anew.
    fn begin(&self, before: Option<&str>) -> impl Future<Output = Result<Self::Visit>> + Send;
}

/// One login of a [`Consent`].
pub trait Visit: Send + 'static {
    /// Where the user is sent back to.
    fn redirect_uri(&self) -> &str;

    /// Sends the user to this address, and returns the one that they came back to, or its query.
    fn ask(self, url: &str) -> impl Future<Output = Result<String>> + Send;
}

type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A [`Consent`] of any type.
pub(crate) trait AnyConsent: Send + Sync {
    fn begin<'a>(&'a self, before: Option<&'a str>) -> Asking<'a, Box<dyn AnyVisit>>;
}

/// A [`Visit`] of any type.
pub(crate) trait AnyVisit: Send {
    fn redirect_uri(&self) -> &str;
    fn ask<'a>(self: Box<Self>, url: &'a str) -> Asking<'a, String>;
}

impl<C: Consent> AnyConsent for C {
    fn begin<'a>(&'a self, before: Option<&'a str>) -> Asking<'a, Box<dyn AnyVisit>> {
        Box::pin(async move { Ok(Box::new(Consent::begin(self, before).await?) as Box<dyn AnyVisit>) })
    }
}

impl<V: Visit> AnyVisit for V {
    fn redirect_uri(&self) -> &str {
        Visit::redirect_uri(self)
    }

    fn ask<'a>(self: Box<Self>, url: &'a str) -> Asking<'a, String> {
        Box::pin(Visit::ask(*self, url))
    }
}

//! The user's part of a login.

pub(crate) mod callback;
pub(crate) mod loopback;
pub(crate) mod paste;

use std::{future::Future, pin::Pin};

use pintle::Result;

/// Leads a user to the login page and returns the address that they are redirected to.
///
/// [`Loopback`](loopback::Loopback) opens a browser and listens for the redirect; [`Paste`](paste::Paste) shows the address
/// and has the user paste the redirect. An application with a web view implements its own.
pub trait Consent: Send + Sync + 'static {
    /// The state of one login.
    type Visit: Visit;

    /// Prepares a login. `before` is the redirect address of the last login: if it can be used again, the client does not
    /// have to be registered again.
    fn begin(&self, before: Option<&str>) -> impl Future<Output = Result<Self::Visit>> + Send;
}

/// One login of a [`Consent`].
pub trait Visit: Send + 'static {
    /// Returns the redirect address.
    fn redirect_uri(&self) -> &str;

    /// Sends the user to this address, and returns the address that they were redirected to, or its query.
    fn ask(self, url: &str) -> impl Future<Output = Result<String>> + Send;
}

type ConsentFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A [`Consent`] of any type.
pub(crate) trait AnyConsent: Send + Sync {
    fn begin<'a>(&'a self, before: Option<&'a str>) -> ConsentFuture<'a, Box<dyn AnyVisit>>;
}

/// A [`Visit`] of any type.
pub(crate) trait AnyVisit: Send {
    fn redirect_uri(&self) -> &str;
    fn ask<'a>(self: Box<Self>, url: &'a str) -> ConsentFuture<'a, String>;
}

impl<C: Consent> AnyConsent for C {
    fn begin<'a>(&'a self, before: Option<&'a str>) -> ConsentFuture<'a, Box<dyn AnyVisit>> {
        Box::pin(async move { Ok(Box::new(Consent::begin(self, before).await?) as Box<dyn AnyVisit>) })
    }
}

impl<V: Visit> AnyVisit for V {
    fn redirect_uri(&self) -> &str {
        Visit::redirect_uri(self)
    }

    fn ask<'a>(self: Box<Self>, url: &'a str) -> ConsentFuture<'a, String> {
        Box::pin(Visit::ask(*self, url))
    }
}

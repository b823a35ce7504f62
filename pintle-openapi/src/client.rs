use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri, header::LOCATION};
use pintle::{
    Error,
    client::http::{Limits, Proxy, Requests},
};
use pintle_oauth::client::Reach;

use crate::operation::Base;

/// The limit of redirects of a request that changes nothing. Others follow none.
const REDIRECTS: usize = 3;

/// Sends the requests of all operations.
pub(crate) struct ApiClient {
    pub(crate) headers: HeaderMap,
    pub(crate) timeout: Duration,
    /// The limit of bytes of an answer.
    pub(crate) max_answer: usize,
    /// The limit of pages of an answer that are read.
    pub(crate) pages: usize,
    pub(crate) proxy: Proxy,
    /// One for each reach, of which there are five.
    clients: Mutex<HashMap<Option<Reach>, Arc<Requests>>>,
}

impl ApiClient {
    pub(crate) fn new(headers: HeaderMap, timeout: Duration, max_answer: usize, proxy: Proxy) -> Self {
        Self { headers, timeout, max_answer, pages: 1, proxy, clients: Mutex::default() }
    }

    fn client(&self, reach: Option<Reach>) -> Arc<Requests> {
        let make = || {
            let mut limits = Limits::default();
            (limits.answer, limits.head_wait) = (Some(self.max_answer), self.timeout);
            let requests = Requests::new().limits(limits).proxy(self.proxy.clone());
            Arc::new(match reach {
                Some(reach) => requests.only(move |address| reach.allows(address)),
                None => requests,
            })
        };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.entry(reach).or_insert_with(make).clone()
    }

    /// Sends a request, and follows redirects to the same origin if it changes nothing.
    ///
    /// # Errors
    ///
    /// The reason why there is no answer, for the model. It has no query, and no header.
    pub(crate) async fn send(&self, base: &Base, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        if base.literal().is_some_and(|address| !base.allows(address)) {
            return Err(format!(
                "`{}` is not a public address, and the program allows no other one: it has to give it with `base`, or call \
                 `allow_private`",
                base.origin
            ));
        }
        let client = self.client(base.reach);
        let (method, headers) = (request.method().clone(), request.headers().clone());
        let mut answer = client.send(request).await.map_err(|error| self.explain(error))?;
        for _ in 0..REDIRECTS {
            let is_followed =
                matches!(method, Method::GET | Method::HEAD) && answer.status().is_redirection();
            let to = answer.headers().get(LOCATION).filter(|_| is_followed);
            let to = to.and_then(|to| same_origin(base, to.to_str().ok()?));
            let Some(to) = to else { break };
            let mut request = Request::new(Bytes::new());
            (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
                (method.clone(), to, headers.clone());
            answer = client.send(request).await.map_err(|error| self.explain(error))?;
        }
        Ok(answer)
    }

    fn explain(&self, error: Error) -> String {
        match error {
            Error::Timeout(_) => {
                format!("there was no answer within {:?}; ask for less, or try again later", self.timeout)
            }
            Error::Decode(_) => format!("the answer has more than {} bytes; ask for less", self.max_answer),
            Error::Io(error) => error.to_string(),
            error => error.to_string(),
        }
    }
}

/// Returns where a URL leads that an API has written, if that is the same origin.
pub(crate) fn same_origin(base: &Base, to: &str) -> Option<Uri> {
    let to = to.split('#').next()?;
    let path = match to.strip_prefix(&base.origin) {
        Some(path) => path,
        None if to.starts_with("//") => return None,
        None => to,
    };
    if !path.starts_with('/') {
        return None;
    }
    format!("{}{path}", base.origin).parse().ok()
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("ApiClient").field("headers", &names).finish_non_exhaustive()
    }
}

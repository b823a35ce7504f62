//! A subscription of the stateless era: a stream that a client holds open to hear of changes.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use http::Response;
use pintle_proto::server::{Call, Listen, Listener};
use pintle_types::RpcError;
use tokio::time::Sleep;

use super::{
    Body, Http,
    response::{PIECE, Source, events},
    service::Asked,
    stateless::event,
};
use crate::server::{Authenticated, Server, around::Around, connection::now, ears::Ear, hearing};

/// How many subscriptions are open, by principal.
#[derive(Debug, Default)]
pub(super) struct Listens(Mutex<HashMap<Option<Box<str>>, usize>>);

/// Opens the stream of a subscription.
pub(super) fn answer(asked: &Asked, listen: Listen) -> Result<Response<Body>, RpcError> {
    let Listen { call, listener, acknowledgement, .. } = listen;
    let Asked { http, server, state, principal, around } = asked;
    let place = Place::take(http, principal.clone(), state.service.bounds().subscriptions)?;
    let ear = server.ears().join();
    ear.follow(listener.watched());
    http.0.listening.add(&ear);
    let mut said = Vec::new();
    event(&mut said, &acknowledgement);
    let keep_alive = http.settings().keep_alive;
    let (server, around) = (server.clone(), around.clone());
    let end = Authenticated::end(around.left());
    let stream =
        Stream { call, listener, ear, server, around, place, said, untold: false, noticed: false, end };
    Ok(events(stream, keep_alive))
}

struct Stream {
    call: Call,
    listener: Listener,
    ear: Arc<Ear>,
    server: Server,
    around: Arc<Around>,
    place: Place,
    said: Vec<u8>,
    /// Whether the listener may have something to tell.
    untold: bool,
    /// Whether extensions may have something to say.
    noticed: bool,
    /// When nobody may listen on.
    end: Option<Pin<Box<Sleep>>>,
}

impl Source for Stream {
    fn poll(&mut self, task: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        out.append(&mut self.said);
        let news = self.ear.take(task);
        let state = self.server.state();
        if !news.is_empty() {
            hearing::note(&mut self.listener, &news);
            self.untold = true;
            self.noticed = true;
        }
        while self.noticed && out.len() < PIECE {
            match self.ear.take_notice() {
                Some(notice) => {
                    let line = hearing::worded(&state, &notice, &self.listener, self.call.peer());
                    line.into_iter().for_each(|line| event(out, &line));
                }
                None => self.noticed = false,
            }
        }
        if self.untold {
            let principal = self.place.principal.as_deref();
            hearing::withhold(
                &state,
                &mut self.listener,
                self.call.peer(),
                principal,
                self.around.extensions(),
            );
            // A slow reader is told when it has read; until then what it has missed is merged.
            while self.untold && out.len() < PIECE {
                match self.listener.next_notice() {
                    Some(line) => event(out, &line),
                    None => self.untold = false,
                }
            }
        }
        let ended = self.end.as_mut().is_some_and(|end| end.as_mut().poll(task).is_ready());
        if ended || self.ear.is_closed() {
            event(out, &state.service.unlisten(&self.call, now()));
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// One of the subscriptions that a principal may hold open.
struct Place {
    http: Http,
    principal: Option<Box<str>>,
}

impl Place {
    fn take(http: &Http, principal: Option<Box<str>>, most: usize) -> Result<Self, RpcError> {
        let mut open = http.0.listens.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(principal.clone()).or_default();
        if *count >= most {
            return Err(RpcError::internal(format!("{most} subscriptions are open: end one first")));
        }
        *count += 1;
        Ok(Self { http: http.clone(), principal })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.http.0.listens.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.principal);
            }
        }
    }
}

//! Subscriptions of the stateless era: event streams of change notifications.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use http::{Response, StatusCode};
use pintle_proto::{
    http::Refusal,
    server::{Call, Listen, Listener},
};
use tokio::time::Sleep;

use super::event;
use crate::server::{
    Authenticated, Principal, Server,
    access::peer_address::AddressKey,
    call::context::RequestContext,
    changes::{ChangeInbox, Recipient},
    clock::now,
    http::{
        Body, Http,
        edge::response::{EventSource, PIECE, events, overloaded},
        request_cx::HttpRequestCx,
    },
};

/// The numbers of open subscriptions.
#[derive(Debug, Default)]
pub(in crate::server::http) struct OpenSubscriptions(Mutex<SubscriptionCounts>);

#[derive(Debug, Default)]
struct SubscriptionCounts {
    held: HashMap<Holder, usize>,
    /// Those of all anonymous connections of an address.
    addresses: HashMap<AddressKey, usize>,
    /// The number of subscriptions without a principal.
    anonymous: usize,
}

/// The owner of subscriptions, for the limit per owner.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Holder {
    Named(Box<str>),
    /// A connection, by its peer address. `None` if the address is not known: all such connections are one owner.
    Connection(Option<SocketAddr>),
}

/// Opens the stream of a subscription.
pub(in crate::server::http) fn answer(cx: &HttpRequestCx, listen: Listen) -> Result<Response<Body>, Refusal> {
    let Listen { call, listener, acknowledgement, .. } = listen;
    let HttpRequestCx { http, server, context, .. } = cx;
    let permit = SubscriptionPermit::take(cx)?;
    let inbox = server.changes().join();
    inbox.follow(listener.watched());
    let subscriber = Principal::of(call.principal(), context.left()).into();
    inbox.edit_owner(|owner| owner.subscriber = Some(Box::new(subscriber)));
    http.0.change_hub.add(&inbox);
    http.0.connect();
    let mut first = Vec::new();
    event(&mut first, &acknowledgement);
    let keep_alive = http.settings().keep_alive;
    let (server, context) = (server.clone(), context.clone());
    let end = Authenticated::expiry(context.left());
    let stream = SubscriptionStream { call, listener, inbox, server, context, _permit: permit, first, end };
    Ok(events(stream, keep_alive))
}

struct SubscriptionStream {
    call: Call,
    listener: Listener,
    inbox: Arc<ChangeInbox>,
    server: Server,
    context: Arc<RequestContext>,
    /// Released when the stream ends.
    _permit: SubscriptionPermit,
    first: Vec<u8>,
    /// The expiry of the caller's token.
    end: Option<Pin<Box<Sleep>>>,
}

impl EventSource for SubscriptionStream {
    fn poll(&mut self, task: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        out.append(&mut self.first);
        let snapshot = self.server.snapshot();
        if let Some(taken) = self.inbox.take(task) {
            self.listener.merge(&taken.changes);
        }
        let mut recipient = Recipient {
            snapshot: &snapshot,
            listener: &mut self.listener,
            peer: self.call.peer(),
            principal: self.call.principal(),
            extensions: self.context.extensions(),
        };
        recipient.withhold();
        // A slow reader is notified when it has read; until then its changes are merged.
        while out.len() < PIECE
            && let Some(line) = recipient.next(&self.inbox)
        {
            event(out, &line);
        }
        let ended = self.end.as_mut().is_some_and(|end| end.as_mut().poll(task).is_ready());
        if ended || self.inbox.is_closed() {
            event(out, &snapshot.service.unlisten(&self.call, now()));
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Holder {
    fn of(cx: &HttpRequestCx) -> Self {
        match &cx.principal {
            Some(name) => Self::Named(name.clone()),
            None => Self::Connection(cx.context.address().map(|address| address.0)),
        }
    }

    fn is_anonymous(&self) -> bool {
        matches!(self, Self::Connection(_))
    }
}

/// The share of the anonymous subscriptions that one address may have.
const ADDRESS_SHARE: usize = 8;

/// A permit for one subscription, released on drop.
struct SubscriptionPermit {
    http: Http,
    holder: Holder,
    /// The address of an anonymous client, if it is known.
    address: Option<AddressKey>,
}

impl SubscriptionPermit {
    fn take(cx: &HttpRequestCx) -> Result<Self, Refusal> {
        let (http, holder, limit) = (&cx.http, Holder::of(cx), cx.snapshot.service.bounds().subscriptions);
        let anonymous = holder.is_anonymous();
        let address = if anonymous { cx.address() } else { None };
        let all = http.settings().anonymous_subscriptions;
        let mut counts = http.0.subscriptions.lock();
        // The limit of anonymous subscriptions does not affect authenticated callers.
        if anonymous && counts.anonymous >= all {
            let message = "the limit of anonymous subscriptions is reached: try again later, or authenticate";
            return Err(overloaded(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        let count = counts.held.get(&holder).copied().unwrap_or_default();
        // Connections without a known address have only the limit of all anonymous subscriptions.
        if count >= limit && holder != Holder::Connection(None) {
            let message = format!("{limit} subscriptions are open: end one first");
            return Err(overloaded(StatusCode::TOO_MANY_REQUESTS, message));
        }
        let of_address = address.map(|key| (key, counts.addresses.get(&key).copied().unwrap_or_default()));
        let address_limit = (all / ADDRESS_SHARE).max(limit);
        if of_address.is_some_and(|(_, count)| count >= address_limit) {
            let message = format!(
                "{address_limit} subscriptions of this address are open: end one first, or authenticate"
            );
            return Err(overloaded(StatusCode::TOO_MANY_REQUESTS, message));
        }
        counts.held.insert(holder.clone(), count + 1);
        counts.addresses.extend(of_address.map(|(key, count)| (key, count + 1)));
        counts.anonymous += usize::from(anonymous);
        drop(counts);
        Ok(Self { http: http.clone(), holder, address })
    }
}

impl Drop for SubscriptionPermit {
    fn drop(&mut self) {
        let mut counts = self.http.0.subscriptions.lock();
        counts.anonymous -= usize::from(self.holder.is_anonymous());
        release(&mut counts.held, &self.holder);
        if let Some(address) = self.address {
            release(&mut counts.addresses, &address);
        }
    }
}

/// Removes one from a count, which is forgotten at zero.
fn release<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl OpenSubscriptions {
    fn lock(&self) -> MutexGuard<'_, SubscriptionCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

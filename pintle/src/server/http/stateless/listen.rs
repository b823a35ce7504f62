//! Subscriptions of the stateless era: event streams of change notifications.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
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
    changes::{ChangeInbox, Recipient},
    clock::now,
    core::driver::context::RequestContext,
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
    /// Those of all anonymous connections of an address, the oldest first.
    addresses: HashMap<AddressKey, BTreeMap<u64, CountedSubscription>>,
    ranked_addresses: BTreeSet<RankedAddress>,
    /// The number of those of a network, and the networks by it.
    networks: HashMap<AddressKey, usize>,
    ranked: BTreeSet<(usize, AddressKey)>,
    /// The number of subscriptions without a principal.
    anonymous: usize,
    last_number: u64,
    /// The number of addresses that were looked at.
    #[cfg(test)]
    steps: usize,
}

/// An address with subscriptions, in the order in which those of a network give way: the last first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct RankedAddress {
    network: AddressKey,
    count: usize,
    newest: u64,
    address: AddressKey,
}

/// A subscription that gives way to those of others when there are too many.
#[derive(Debug)]
struct CountedSubscription {
    holder: Holder,
    inbox: Weak<ChangeInbox>,
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
    let inbox = server.changes().join();
    let permit = SubscriptionPermit::take(cx, &inbox)?;
    inbox.follow(&listener);
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
    /// The address of an anonymous client, if it is known, and the number of the subscription.
    address: Option<(AddressKey, u64)>,
}

impl SubscriptionPermit {
    fn take(cx: &HttpRequestCx, inbox: &Arc<ChangeInbox>) -> Result<Self, Refusal> {
        let (http, holder, limit) = (&cx.http, Holder::of(cx), cx.snapshot.service.bounds().subscriptions);
        let anonymous = holder.is_anonymous();
        let address = if anonymous { cx.address() } else { None };
        let all = http.settings().anonymous_subscriptions;
        let mut counts = http.0.subscriptions.lock();
        let count = counts.held.get(&holder).copied().unwrap_or_default();
        // Connections without a known address have only the limit of all anonymous subscriptions.
        if count >= limit && holder != Holder::Connection(None) {
            let message = format!("{limit} subscriptions are open: end one first");
            return Err(overloaded(StatusCode::TOO_MANY_REQUESTS, message));
        }
        let of_address = address.and_then(|key| counts.addresses.get(&key)).map_or(0, BTreeMap::len);
        let address_limit = (all / ADDRESS_SHARE).max(limit);
        if of_address >= address_limit {
            let message = format!(
                "{address_limit} subscriptions of this address are open: end one first, or authenticate"
            );
            return Err(overloaded(StatusCode::TOO_MANY_REQUESTS, message));
        }
        // The limit of anonymous subscriptions does not affect authenticated callers.
        let mut given = None;
        if anonymous && counts.anonymous >= all {
            given = address.and_then(|address| counts.give_way(address));
            if given.is_none() {
                let message =
                    "the limit of anonymous subscriptions is reached: try again later, or authenticate";
                return Err(overloaded(StatusCode::SERVICE_UNAVAILABLE, message));
            }
        }
        *counts.held.entry(holder.clone()).or_default() += 1;
        counts.anonymous += usize::from(anonymous);
        let address = address.map(|address| (address, counts.add(address, &holder, inbox)));
        drop(counts);
        // Its stream ends as if the server had ended it.
        given.and_then(|given| given.upgrade()).into_iter().for_each(|given| given.close());
        Ok(Self { http: http.clone(), holder, address })
    }
}

impl SubscriptionCounts {
    fn add(&mut self, address: AddressKey, holder: &Holder, inbox: &Arc<ChangeInbox>) -> u64 {
        self.last_number += 1;
        let (number, inbox) = (self.last_number, Arc::downgrade(inbox));
        let open = CountedSubscription { holder: holder.clone(), inbox };
        self.edit_address(address, |all| all.insert(number, open));
        self.rank(address.network(), |count| count + 1);
        number
    }

    /// Removes the newest subscription of the network that has most, for one of an address whose network has fewer. Within one network,
    /// addresses are compared.
    fn give_way(&mut self, newcomer: AddressKey) -> Option<Weak<ChangeInbox>> {
        let (count, network) = *self.ranked.last()?;
        let RankedAddress { count: of_address, newest, address, .. } = self.heaviest_address(network)?;
        let (count, fewer) = match network == newcomer.network() {
            true => (of_address, self.addresses.get(&newcomer).map_or(0, BTreeMap::len)),
            false => (count, self.networks.get(&newcomer.network()).copied().unwrap_or_default()),
        };
        if count <= fewer + 1 {
            return None;
        }
        self.remove(address, newest)
    }

    /// Returns the address that has most of a network.
    fn heaviest_address(&mut self, network: AddressKey) -> Option<RankedAddress> {
        let of_network = |count, newest, address| RankedAddress { network, count, newest, address };
        let bounds = of_network(0, 0, AddressKey::MIN)..of_network(usize::MAX, u64::MAX, AddressKey::MIN);
        let mut all = self.ranked_addresses.range(bounds).rev().inspect(|_| {
            #[cfg(test)]
            {
                self.steps += 1;
            }
        });
        all.next().copied()
    }

    /// Removes an anonymous subscription, unless it has given way already.
    fn remove(&mut self, address: AddressKey, number: u64) -> Option<Weak<ChangeInbox>> {
        let removed = self.edit_address(address, |all| all.remove(&number))?;
        self.rank(address.network(), |count| count - 1);
        self.release(&removed.holder);
        Some(removed.inbox)
    }

    /// Changes the subscriptions of an address, which is forgotten without any.
    fn edit_address<T>(
        &mut self,
        address: AddressKey,
        edit: impl FnOnce(&mut BTreeMap<u64, CountedSubscription>) -> T,
    ) -> T {
        let open = self.addresses.entry(address).or_default();
        if let Some(before) = RankedAddress::of(address, open) {
            self.ranked_addresses.remove(&before);
        }
        let edited = edit(open);
        match RankedAddress::of(address, open) {
            Some(after) => drop(self.ranked_addresses.insert(after)),
            None => drop(self.addresses.remove(&address)),
        }
        edited
    }

    /// Removes one from the counts of its holder, which is forgotten at zero.
    fn release(&mut self, holder: &Holder) {
        self.anonymous -= usize::from(holder.is_anonymous());
        if let Some(count) = self.held.get_mut(holder) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(holder);
            }
        }
    }

    fn rank(&mut self, network: AddressKey, change: impl FnOnce(usize) -> usize) {
        let before = self.networks.remove(&network).unwrap_or_default();
        self.ranked.remove(&(before, network));
        let count = change(before);
        if count > 0 {
            self.networks.insert(network, count);
            self.ranked.insert((count, network));
        }
    }
}

impl RankedAddress {
    fn of(address: AddressKey, open: &BTreeMap<u64, CountedSubscription>) -> Option<Self> {
        let (newest, _) = open.last_key_value()?;
        Some(Self { network: address.network(), count: open.len(), newest: *newest, address })
    }
}

impl Drop for SubscriptionPermit {
    fn drop(&mut self) {
        let mut counts = self.http.0.subscriptions.lock();
        match self.address {
            Some((address, number)) => drop(counts.remove(address, number)),
            None => counts.release(&self.holder),
        }
    }
}

impl OpenSubscriptions {
    fn lock(&self) -> MutexGuard<'_, SubscriptionCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address of a network of 24 bits.
    fn address(network: u8, near: u8) -> AddressKey {
        AddressKey::of([10, 0, network, near].into())
    }

    #[test]
    fn who_gives_way_is_found_without_a_look_at_all() {
        let mut counts = SubscriptionCounts::default();
        let inbox = Arc::new(ChangeInbox::default());
        let mut open = |address: AddressKey| {
            let holder = Holder::Connection(None);
            counts.anonymous += 1;
            *counts.held.entry(holder.clone()).or_default() += 1;
            counts.add(address, &holder, &inbox)
        };
        for near in 0..250 {
            (1..40).for_each(|network| {
                open(address(network, near));
            });
        }
        // Of the network that has most, the address that has most; of two that have as many, the newer one.
        let numbers = [7, 7, 9, 9, 5].map(|near| open(address(3, near)));
        for expected in [numbers[3], numbers[1], numbers[4]] {
            counts.steps = 0;
            assert_eq!(counts.heaviest_address(address(3, 0)).unwrap().newest, expected);
            assert!(counts.give_way(address(200, 1)).is_some());
            assert!(counts.steps <= 2, "{} addresses were looked at", counts.steps);
        }
    }

    #[test]
    fn what_has_ended_is_counted_no_more_and_forgotten_at_last() {
        let (mut counts, holder) = (SubscriptionCounts::default(), Holder::Connection(None));
        let inbox = Arc::new(ChangeInbox::default());
        let open = [1, 1, 2].map(|near| {
            counts.anonymous += 1;
            *counts.held.entry(holder.clone()).or_default() += 1;
            (address(1, near), counts.add(address(1, near), &holder, &inbox))
        });
        let (first, number) = open[0];
        assert!(counts.remove(first, number).is_some());
        assert!(counts.remove(first, number).is_none(), "it has ended");
        assert_eq!((counts.held.get(&holder), counts.anonymous), (Some(&2), 2));
        assert_eq!(counts.ranked.last().map(|(count, _)| *count), Some(2));
        for (address, number) in &open[1..] {
            assert!(counts.remove(*address, *number).is_some());
        }
        assert!(counts.held.is_empty() && counts.addresses.is_empty() && counts.ranked_addresses.is_empty());
        assert!(counts.networks.is_empty() && counts.ranked.is_empty() && counts.anonymous == 0);
    }
}

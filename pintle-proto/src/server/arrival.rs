use std::fmt;

use pintle_types::{RawObject, Request, RpcError, method};

use super::{Service, Stamped, stateless::Sender};
use crate::ledger::{Account, Charge, FREE, Held, Owner};

/// The circumstances under which a message arrived, besides its bytes.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival<'a> {
    time: ArrivalTime,
    /// The authenticated principal of the sender, if there is one.
    pub principal: Option<&'a str>,
    pub(super) sender: Option<&'a Sender>,
    payer: Payer<'a>,
}

/// The account that a message is charged to.
#[derive(Clone, Copy, Default)]
enum Payer<'a> {
    /// That of a process of this machine.
    #[default]
    Local,
    Account(&'a Account),
    /// Looked up if there is something to charge.
    Lazy(&'a dyn Fn() -> Account),
}

impl fmt::Debug for Payer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(account) => account.fmt(f),
            Self::Local | Self::Lazy(_) => f.write_str("Payer"),
        }
    }
}

/// Returns the account, or that of a process of this machine.
pub(super) fn payer(account: Option<&Account>, service: &Service) -> Account {
    account.cloned().unwrap_or_else(|| service.ledger().account(&Owner::Local))
}

impl<'a> Arrival<'a> {
    /// Creates the arrival of a message at this time, in milliseconds of the Unix epoch, without a principal.
    pub fn at(now: u64) -> Self {
        Self { time: ArrivalTime::At(now), ..Self::default() }
    }

    /// Creates the arrival of a message that is being handled now, without a principal. The clock is read if the time matters:
    /// few messages have a state that can expire.
    pub fn with_clock(clock: fn() -> u64) -> Self {
        Self { time: ArrivalTime::Now(clock), ..Self::default() }
    }

    /// Returns the time in milliseconds of the Unix epoch.
    pub(super) fn now(&self) -> u64 {
        match self.time {
            ArrivalTime::At(now) => now,
            ArrivalTime::Now(clock) => clock(),
        }
    }

    /// Sets the principal of the sender.
    #[must_use]
    pub fn by(self, principal: &'a str) -> Self {
        Self { principal: Some(principal), ..self }
    }

    /// Sets the account that a request without an engine is charged to. It is asked for only if the request is long, or opens a
    /// subscription.
    #[must_use]
    pub fn charged_to(self, account: &'a dyn Fn() -> Account) -> Self {
        Self { payer: Payer::Lazy(account), ..self }
    }

    /// Sets the account of a connection.
    pub(super) fn paid_by(self, account: Option<&'a Account>) -> Self {
        Self { payer: account.map_or(Payer::Local, Payer::Account), ..self }
    }

    pub(super) fn account(&self, service: &Service) -> Account {
        match self.payer {
            Payer::Local => payer(None, service),
            Payer::Account(account) => account.clone(),
            Payer::Lazy(account) => account(),
        }
    }

    /// Adds the result of [`Service::stamped`], so that [`Service::admit`] does not read `_meta` again.
    #[must_use]
    pub fn stamped(self, stamped: &'a Stamped) -> Self {
        Self { sender: stamped.sender.as_ref().ok(), ..self }
    }
}

/// The time at which a message arrived.
#[derive(Clone, Copy, Debug)]
enum ArrivalTime {
    At(u64),
    Now(fn() -> u64),
}

impl Default for ArrivalTime {
    fn default() -> Self {
        Self::At(0)
    }
}

/// Charges for the params of a call, unless they are short.
#[inline]
pub(super) fn charge_call(
    service: &Service,
    params: &RawObject,
    account: impl FnOnce() -> Account,
) -> Result<Charge, RpcError> {
    let bytes = params.as_str().len();
    if bytes <= FREE {
        return Ok(Charge::default());
    }
    let charge = account().charge(Held::Call, bytes, service.bounds().ceiling(Held::Call));
    charge.map_err(|full| full.error(crate::RETRY_AFTER_MS))
}

impl Service {
    /// Charges the sender of a stateless request for its params. That of a subscription has an account in any case.
    pub(super) fn charge_call(&self, request: &Request, arrival: &Arrival<'_>) -> Result<Charge, RpcError> {
        if request.method == method::SUBSCRIPTIONS_LISTEN {
            return Ok(Charge::new(arrival.account(self), Held::Call));
        }
        match &request.params {
            Some(params) => charge_call(self, params, || arrival.account(self)),
            None => Ok(Charge::default()),
        }
    }
}

//! The owners of tasks.

use std::net::IpAddr;

use pintle::server::{Cx, Principal};

const LOCAL: &str = "local";
const ANONYMOUS: &str = "anonymous";

const NAMED: &str = "name:";
const IN_SESSION: &str = "session:";

fn named_owner(name: &str) -> String {
    format!("{NAMED}{name}")
}

/// Returns whether a task of this owner is one of this caller: whether `owner` is what [`owner`] returns.
pub(super) fn is_owner(owner: &str, cx: &Cx) -> bool {
    match cx.identity() {
        Principal::Local => owner == LOCAL,
        Principal::Named(name) => owner.strip_prefix(NAMED) == Some(name),
        Principal::Anonymous => match cx.session().and_then(|session| session.unique_name()) {
            Some(name) => owner.strip_prefix(IN_SESSION) == Some(&*name),
            None => owner == ANONYMOUS,
        },
    }
}

/// Returns the caller that a task belongs to. Of an anonymous caller without a session nothing is known: the id of the task is what
/// only it has.
pub(super) fn owner(cx: &Cx) -> String {
    match cx.identity() {
        Principal::Local => LOCAL.to_owned(),
        Principal::Named(name) => named_owner(name),
        Principal::Anonymous => match cx.session().and_then(|session| session.unique_name()) {
            Some(name) => format!("{IN_SESSION}{name}"),
            None => ANONYMOUS.to_owned(),
        },
    }
}

/// Returns whether the tasks of an owner are those of one caller, who may list them.
pub(super) fn is_one_caller(owner: &str) -> bool {
    owner != ANONYMOUS
}

/// Returns the caller that a task is counted for, so that an anonymous one does not fill what others have.
pub(super) fn account(cx: &Cx) -> String {
    match (cx.identity(), cx.peer_address().map(|address| address.ip())) {
        (Principal::Anonymous, Some(IpAddr::V4(ip))) => format!("address:{ip}"),
        // A network of the last 64 bits has one user.
        (Principal::Anonymous, Some(IpAddr::V6(ip))) => {
            let [a, b, c, d, ..] = ip.segments();
            format!("address:{a:x}:{b:x}:{c:x}:{d:x}")
        }
        _ => owner(cx),
    }
}

/// Returns whether a subscriber with this principal may be granted a task of this owner. One without a principal may be the local user:
/// [`is_visible_to`] knows.
pub(super) fn may_watch(owner: &str, principal: Option<&str>) -> bool {
    match principal {
        Some(name) => owner == named_owner(name),
        None => owner == LOCAL,
    }
}

/// Returns whether the subscriptions of a caller are notified of a task of this owner. Those of an anonymous caller are not: nothing tells
/// it from others, so it polls with the id.
pub(super) fn is_visible_to(owner: &str, caller: Principal<'_>) -> bool {
    match caller {
        Principal::Local => owner == LOCAL,
        Principal::Named(name) => owner == named_owner(name),
        Principal::Anonymous => false,
    }
}

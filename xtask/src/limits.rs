//! `docs/limits.md`, from the table of the ledger.

use std::fs;

#[path = "../../pintle-proto/src/ledger/rows.rs"]
mod rows;

use crate::{cargo::Failure, workspace};

pub(crate) const PAGE: &str = "docs/limits.md";

pub(crate) fn command(_: &[String]) -> Result<(), Failure> {
    let path = workspace::root().join(PAGE);
    let failed = |error| Failure::new(format!("`{PAGE}` cannot be written: {error}"), "cargo xtask limits");
    fs::write(path, page()).map_err(failed)
}

/// Returns the page.
pub(crate) fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for row in rows::ROWS {
        page += &format!("| {} | {} | {} | {} | {} |\n", row.what, row.owner, row.all, row.seen, row.setting);
    }
    page
}

const INTRODUCTION: &str = "\
# Limits: what a client can make a server hold

`cargo xtask limits` writes this page. The values are the defaults.

An owner is a principal, or an address if there is none: an IPv4 address, or an IPv6 network of 64 bits. A network is an
IPv4 network of 24 bits, or an IPv6 network of 48 bits. Behind a proxy, set `Http::trusted_proxies`, or all its clients
are one owner; all clients whose address is not known share what is without a principal. The process at the other end of
a pipe has all.

Bytes are charged to the owner, to its network, and to all; the first 4 KiB of each call, session, message and queue of
notifications are not, because their number is bounded. An owner has a quarter of each limit, a network half, and all
without a principal three quarters; the only message of an owner may have more than its part. When there is no room,
whoever holds most gives way: notifications of extensions first, then sessions, then calls that wait for answers, then
the newest call. If the newcomer holds most, it is refused, with what to do in the message. What gives way is dropped
soon, so that there may be more for a moment, by as much as that.

| what | of one owner | in all | what the client sees | setting |
|---|---|---|---|---|
";

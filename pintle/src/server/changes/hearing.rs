//! What a listener is told of what an ear has heard.

use std::panic::{AssertUnwindSafe, catch_unwind};

use http::Extensions;
use pintle_proto::{Peer, server::Listener};
use pintle_types::RawObject;
use serde_json::Value;

use super::hub::News;
use crate::server::{Entry, Notice, Scope, access::required::Required, state::State};

/// Marks for a listener what has changed.
pub(crate) fn note(listener: &mut Listener, news: &[News]) {
    for news in news {
        match news {
            News::Notices => {}
            News::One(change) => drop(listener.note(change)),
            News::EveryResource => listener.note_all(),
        }
    }
}

/// What somebody does not see has not changed for them either.
pub(crate) fn withhold(
    state: &State,
    listener: &mut Listener,
    peer: &Peer,
    principal: Option<&str>,
    extensions: &Extensions,
) {
    if state.filters.is_empty() && !state.catalogue.requires.some {
        return;
    }
    let scope = Scope { peer, principal, extensions };
    let sees = |required: &Required, entry: Entry<'_>| {
        required.is_met(extensions) && state.filters.iter().all(|filter| filter(&scope, entry))
    };
    // A filter that panics hides: nothing of the author's may end the connection.
    listener
        .withhold(|uri| catch_unwind(AssertUnwindSafe(|| !state.catalogue.judge(uri, sees))).unwrap_or(true));
}

/// What an extension has to say, in a listener's words, if it wants to hear it and may.
pub(crate) fn worded(
    state: &State,
    notice: &Notice,
    listener: &Listener,
    peer: &Peer,
    principal: Option<&str>,
) -> Option<Vec<u8>> {
    let wanted = match listener.tag() {
        Some(_) => notice.is_for(listener.grants(&notice.member)),
        None => notice.is_for(granted(state, notice, peer, principal).as_ref()),
    };
    let params = RawObject::from_serialize(&notice.params).ok();
    wanted.then(|| listener.tell(&notice.method, params.as_ref()))
}

/// What a session is granted of a member of the filter. It has no filter, so it wants all of the extensions that its client
/// declared; how much of that it gets the extension decides, as for a subscription.
fn granted(state: &State, notice: &Notice, peer: &Peer, principal: Option<&str>) -> Option<Value> {
    let mut extensions = state.service.extensions().iter();
    let known = extensions.find(|known| known.listens.contains(&notice.member) && known.is_declared(peer))?;
    let all = Value::Bool(true);
    let Some(grant) = &known.grant else { return Some(all) };
    // Nothing of the author's may end the connection.
    catch_unwind(AssertUnwindSafe(|| grant.grant(&notice.member, &all, principal))).ok().flatten()
}

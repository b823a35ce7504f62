//! Subscriptions to resources of providers: what happens before they are acknowledged.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pintle_proto::server::Outcome;
use pintle_types::{RawObject, RpcError, method};
use serde_json::{Value, value::to_raw_value};
use tokio::task::JoinSet;

use super::{any::AnyProvider, entry::EntryRank, subscription::ProviderSubscription, tasks::watched_tasks};
use crate::server::{Cx, ListKind, RequestError, Target};

/// A subscription that the providers accept.
pub(crate) struct AcceptedSubscription {
    /// The params, without the resources that were refused.
    pub(crate) params: RawObject,
    /// The values that are kept as long as it is open.
    pub(crate) held: ProviderSubscription,
}

/// Has the providers prepare a subscription that is permitted with these params. Of several resources, those that are refused are left out; a single one fails the
/// request.
pub(crate) async fn prepare(cx: &Cx, params: RawObject) -> Result<AcceptedSubscription, Outcome> {
    let subscribes = matches!(cx.method(), method::RESOURCES_SUBSCRIBE | method::SUBSCRIPTIONS_LISTEN);
    if !subscribes {
        return Ok(AcceptedSubscription { params, held: ProviderSubscription::new() });
    }
    // A subscription to more is refused when it is carried out.
    let limit = cx.snapshot().service.bounds().watched;
    let targets = crate::target::targets(cx.method(), &params);
    let uris: Vec<_> = targets.iter().take(limit).map(|target| target.name().to_owned()).collect();
    let mut held = subscribe(cx, uris).await;
    if cx.method() == method::RESOURCES_SUBSCRIBE {
        let refused = held.refused().next().map(|(_, error)| Outcome::Failed(error.clone()));
        return refused.map_or(Ok(AcceptedSubscription { params, held }), Err);
    }
    let params = without_refused(&params, &held).unwrap_or(params);
    let params = watched_tasks::settle(cx, params, &mut held)?;
    Ok(AcceptedSubscription { params, held })
}

/// Ends what [`prepare`] has made, because the session does not watch the resource.
pub(crate) async fn end(cx: &Cx, params: &RawObject) {
    for target in crate::target::targets(cx.method(), params) {
        unsubscribe(cx, target.name()).await;
    }
}

/// Returns the params of a `subscriptions/listen` without the resources that were refused.
fn without_refused(params: &RawObject, held: &ProviderSubscription) -> Option<RawObject> {
    let refused: HashSet<&str> = held.refused().map(|(uri, _)| uri).collect();
    if refused.is_empty() {
        return None;
    }
    let mut wanted: Value = params.decode_member("notifications").ok()??;
    let uris = wanted.get_mut("resourceSubscriptions")?.as_array_mut()?;
    uris.retain(|uri| uri.as_str().is_none_or(|uri| !refused.contains(uri)));
    Some(params.with("notifications", &to_raw_value(&wanted).ok()?))
}

/// Has the providers of a server prepare a subscription to these resources. A resource is that of the provider that describes it, or
/// else may be of any; then it is refused if all refuse it.
pub(crate) async fn subscribe(cx: &Cx, uris: Vec<String>) -> ProviderSubscription {
    let snapshot = cx.snapshot();
    let mut asked: Vec<(Arc<dyn AnyProvider>, Vec<String>)> =
        snapshot.providers.iter().map(|known| (known.provider.clone(), Vec::new())).collect();
    // How many providers were asked for a resource that not one of them describes.
    let mut open: HashMap<String, usize> = HashMap::new();
    for uri in uris {
        let target = Target::Resource(uri.as_str().into());
        let own = snapshot.own(cx.overlay_key(), &target).map(|own| own.rank);
        // Nothing is sent of one that the caller may not watch.
        if own == Some(EntryRank::Exact) || !snapshot.shows_resource(&cx.scope(), &uri) {
            continue;
        }
        let watchable =
            |at: &usize| snapshot.providers.get(*at).is_some_and(|it| it.offers(ListKind::Resources));
        let scope = cx.scope();
        let mut numbers: Vec<usize> = (0..asked.len()).filter(watchable).collect();
        let described = numbers.iter().filter_map(|at| {
            let entry = asked[*at].0.find(&scope, &target).known()?;
            Some((entry.rank(&target), *at))
        });
        match (described.min(), own) {
            (Some((rank, owner)), own) if own.is_none_or(|own| rank < own) => numbers = vec![owner],
            (_, Some(_)) => continue,
            _ => {}
        }
        open.insert(uri.clone(), numbers.len());
        numbers.iter().for_each(|at| asked[*at].1.push(uri.clone()));
    }
    // Where changes of lists are pushed, a subscription is to resources only.
    let is_listening = !cx.facts().pushes_changes;
    let wanted = watched_tasks::wanted(cx);
    let mut all = ProviderSubscription::new();
    let mut joined = JoinSet::new();
    for (number, (provider, uris)) in asked.into_iter().enumerate() {
        if !is_listening && uris.is_empty() {
            continue;
        }
        let tasks: Vec<_> = wanted.iter().filter(|task| task.provider == number).collect();
        let cx = watched_tasks::of_provider(cx.clone(), &tasks);
        joined.spawn(async move {
            let subscribed = provider.watch().subscribe(cx, uris.clone()).await;
            (number, subscribed.unwrap_or_else(|error| refuse_all(&uris, error)))
        });
    }
    let mut refused: HashMap<String, (usize, RpcError)> = HashMap::new();
    while let Some(subscribed) = joined.join_next().await {
        // A provider that panics takes no part.
        let Ok((number, mut subscribed)) = subscribed else { continue };
        let granted = subscribed.take_granted_tasks();
        if let Some(known) = snapshot.providers.get(number) {
            watched_tasks::join(&mut all, known, number, &granted, &wanted);
        }
        for (uri, error) in all.join(subscribed) {
            refused.entry(uri).or_insert((0, error)).0 += 1;
        }
    }
    for (uri, (count, error)) in refused {
        if open.get(&uri).is_some_and(|asked| *asked <= count) {
            all.refuse(uri, error);
        }
    }
    all
}

fn refuse_all(uris: &[String], error: RequestError) -> ProviderSubscription {
    let error = match error.outcome(method::RESOURCES_SUBSCRIBE, None) {
        Outcome::Failed(error) => error,
        _ => RpcError::internal("the provider of the resource failed: see the log of the server"),
    };
    let mut subscription = ProviderSubscription::new();
    uris.iter().for_each(|uri| subscription.refuse(uri.as_str(), error.clone()));
    subscription
}

/// Ends a subscription of a session in the providers of a server.
pub(crate) async fn unsubscribe(cx: &Cx, uri: &str) {
    for known in cx.snapshot().providers.iter().filter(|known| known.offers(ListKind::Resources)) {
        known.provider.watch().unsubscribe(cx.clone(), uri.to_owned()).await;
    }
}

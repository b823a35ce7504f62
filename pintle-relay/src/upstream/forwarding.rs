use std::sync::Weak;

use pintle::client::{Change, Event};
use tokio::time::timeout;

use super::{MAX_RECONNECT_DELAY, RECONNECT_DELAY, Upstream, link::MAX_SUBSCRIBE_WAIT};
use crate::link_state::{sharing::LinkSharing, watched_tasks::task_notice};

/// Forwards the changes that the first connection reports, until the relay is dropped.
pub(crate) async fn forward_changes(weak: Weak<Upstream>, sharing: LinkSharing) {
    let mut delay = RECONNECT_DELAY;
    let Some(mut opened) = weak.upgrade().map(|upstream| upstream.primary_opened()) else { return };
    // The first one is open.
    let mut is_open = true;
    loop {
        let Some(upstream) = weak.upgrade() else { return };
        if !is_open && !upstream.keeps_primary(sharing) {
            drop(upstream);
            if opened.changed().await.is_err() {
                return;
            }
            is_open = true;
            continue;
        }
        let Ok(link) = upstream.live_primary().await else {
            drop(upstream);
            let _ = timeout(delay, opened.changed()).await;
            delay = (delay * 2).min(MAX_RECONNECT_DELAY);
            continue;
        };
        // From here on it is opened again by others only.
        opened.mark_unchanged();
        delay = RECONNECT_DELAY;
        let connection = link.connection.clone();
        drop(upstream);
        if let Ok(mut changes) = connection.changes().await {
            if let Some(upstream) = weak.upgrade() {
                upstream.set_forwarded(&link);
                upstream.send_subscriptions();
                upstream.watched_tasks.request_again(&connection, MAX_SUBSCRIBE_WAIT).await;
            }
            drop(connection);
            // Ends when the connection does: then it is opened again.
            while let Some(event) = changes.next().await {
                let Some(upstream) = weak.upgrade() else { return };
                publish(&upstream, sharing, link.catalogue.note(&event));
                if let Event::Notification(notification) = event
                    && !upstream.identity().is_in_loop()
                    && let Some(notice) = task_notice(notification)
                {
                    upstream.attached().tell(&notice);
                }
            }
        } else {
            if let Some(upstream) = weak.upgrade() {
                upstream.set_forwarded(&link);
            }
            connection.wait().await;
        }
        let Some(upstream) = weak.upgrade() else { return };
        if !upstream.can_reopen() {
            return;
        }
        is_open = false;
        let changes = link.catalogue.note(&Event::Reopened);
        // Nobody depends on one that was closed because it was not needed.
        if upstream.keeps_primary(sharing) || !link.is_over() {
            publish(&upstream, sharing, changes);
        }
        upstream.watched.reset();
        let is_kept = upstream.keeps_primary(sharing);
        drop(upstream);
        if is_kept {
            // Whoever needs it opens it earlier.
            let _ = timeout(delay, opened.changed()).await;
        }
    }
}

/// Publishes changes that the first connection reports to those who depend on it.
fn publish(upstream: &Upstream, sharing: LinkSharing, changes: &[Change]) {
    if upstream.identity().is_in_loop() || changes.is_empty() {
        return;
    }
    let (attached, audience) = (upstream.attached(), upstream.primary_audience(sharing));
    // Nobody has another connection.
    let is_for_all = upstream.is_common(sharing);
    match upstream.principal() {
        Some(name) => {
            attached.publish_to(changes, &|owner| owner.is_of(name) && (is_for_all || audience(owner)));
        }
        None if is_for_all => attached.publish_all(changes),
        None => attached.publish_to(changes, &audience),
    }
}

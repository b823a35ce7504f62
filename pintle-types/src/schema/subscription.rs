use serde::{Deserialize, Serialize};

use super::base::ResultType;
use crate::{JsonObject, Meta, RequestId};

/// What a listener wants to hear of, or will. Extensions add theirs.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    /// Changes of the list of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Changes of the list of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Changes of the list of resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// Changes of these resources, by URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscriptionFilter {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a listener wants to hear of.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SubscriptionsListenParams {
    /// Its wishes.
    pub notifications: SubscriptionFilter,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscriptionsListenParams {
    /// These wishes.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, ..Self::default() }
    }
}

/// What a listener will hear of: the first message of a subscription.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SubscriptionsAcknowledgedParams {
    /// What is granted.
    pub notifications: SubscriptionFilter,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscriptionsAcknowledgedParams {
    /// This is granted.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, ..Self::default() }
    }
}

/// The end of a subscription, by the server's will. `_meta` says which.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsListenResult {
    /// What kind of result it is; absent means [`ResultType::Complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscriptionsListenResult {
    /// The end of the subscription that the request `id` opened.
    pub fn new(id: &RequestId) -> Self {
        let mut meta = Meta::new();
        meta.set_subscription_id(id);
        Self { meta: Some(meta), ..Self::default() }
    }
}

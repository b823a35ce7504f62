use serde::{Deserialize, Serialize};

use super::base::ResultType;
use crate::{JsonObject, Meta, RequestId};

/// A set of notifications that a client subscribes to. Extensions add members.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    /// Whether changes of the list of tools are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Whether changes of the list of prompts are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Whether changes of the list of resources are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// The URIs of resources whose updates are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscriptionFilter {
    /// Creates a value without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the protocol defines this member, so that an extension cannot have it.
    ///
    /// ```
    /// use pintle_types::schema::SubscriptionFilter;
    ///
    /// assert!(SubscriptionFilter::defines("toolsListChanged"));
    /// assert!(!SubscriptionFilter::defines("taskIds"));
    /// ```
    pub fn defines(member: &str) -> bool {
        let filter = JsonObject::from_iter([(member.to_owned(), serde_json::Value::Null)]);
        serde_json::from_value::<Self>(filter.into()).is_ok_and(|filter| filter.extra.is_empty())
    }
}

/// The params of `subscriptions/listen`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SubscriptionsListenParams {
    /// The requested notifications.
    pub notifications: SubscriptionFilter,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscriptionsListenParams {
    /// Creates params with a filter.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, ..Self::default() }
    }
}

/// The params of `notifications/subscriptions/acknowledged`, the first message of a subscription.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SubscriptionsAcknowledgedParams {
    /// The granted notifications.
    pub notifications: SubscriptionFilter,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscriptionsAcknowledgedParams {
    /// Creates params with the granted filter.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, ..Self::default() }
    }
}

/// The result of `subscriptions/listen`: the server has ended the subscription that `_meta` names.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsListenResult {
    /// The type of the result. Absent means [`ResultType::Complete`].
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
    /// Creates the result of the subscription that the request `id` opened.
    pub fn new(id: &RequestId) -> Self {
        let mut meta = Meta::new();
        meta.set_subscription_id(id);
        Self { meta: Some(meta), ..Self::default() }
    }
}

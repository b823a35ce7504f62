use super::base::ResultType;
use crate::common::object;
use crate::{JsonObject, Meta, RequestId};

object! {
    /// A set of notifications that a client subscribes to. Extensions add members.
    #[derive(Debug, Default)]
    SubscriptionFilter {
        /// Whether changes of the list of tools are included.
        tools_list_changed?: bool,
        /// Whether changes of the list of prompts are included.
        prompts_list_changed?: bool,
        /// Whether changes of the list of resources are included.
        resources_list_changed?: bool,
        /// The URIs of resources whose updates are included.
        resource_subscriptions?: Vec<String>,
        ..
    }
    /// Creates a value without members.
    new()
}

impl SubscriptionFilter {
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

object! {
    /// The params of `subscriptions/listen`.
    #[derive(Debug, Default)]
    SubscriptionsListenParams {
        /// The requested notifications.
        notifications: SubscriptionFilter,
        ..meta
    }
    /// Creates params with a filter.
    new(notifications: SubscriptionFilter)
}

object! {
    /// The params of `notifications/subscriptions/acknowledged`, the first message of a subscription.
    #[derive(Debug, Default)]
    SubscriptionsAcknowledgedParams {
        /// The granted notifications.
        notifications: SubscriptionFilter,
        ..meta
    }
    /// Creates params with the granted filter.
    new(notifications: SubscriptionFilter)
}

object! {
    /// The result of `subscriptions/listen`: the server has ended the subscription that `_meta` names.
    #[derive(Debug, Default)]
    SubscriptionsListenResult {
        /// The type of the result. Absent means [`ResultType::Complete`].
        result_type?: ResultType,
        ..meta
    }
}

impl SubscriptionsListenResult {
    /// Creates the result of the subscription that the request `id` opened.
    pub fn new(id: &RequestId) -> Self {
        let mut meta = Meta::new();
        meta.set_subscription_id(id);
        Self { meta: Some(meta), ..Self::default() }
    }
}

use pintle_types::{Notification, RawObject, method};

/// A change on a server, as the server announces it and as the client is notified of it.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// The list of tools changed.
    Tools,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources or of resource templates changed.
    Resources,
    /// A resource was updated. It may be a sub-resource of the one that was subscribed to.
    Resource(Box<str>),
}

impl Change {
    /// Returns the change that a notification announces, if it announces one.
    pub fn of(notification: &Notification) -> Option<Self> {
        Some(match &*notification.method {
            method::NOTIFICATIONS_TOOLS_LIST_CHANGED => Self::Tools,
            method::NOTIFICATIONS_PROMPTS_LIST_CHANGED => Self::Prompts,
            method::NOTIFICATIONS_RESOURCES_LIST_CHANGED => Self::Resources,
            method::NOTIFICATIONS_RESOURCES_UPDATED => {
                Self::Resource(notification.params.as_ref()?.decode_member("uri").ok()??)
            }
            _ => return None,
        })
    }

    /// Returns the notification that announces the change.
    pub fn to_notification(&self) -> Notification {
        let params = |uri: &str| RawObject::builder(uri.len() + 16).text("uri", uri).finish().ok();
        match self {
            Self::Tools => Notification::new(method::NOTIFICATIONS_TOOLS_LIST_CHANGED, None),
            Self::Prompts => Notification::new(method::NOTIFICATIONS_PROMPTS_LIST_CHANGED, None),
            Self::Resources => Notification::new(method::NOTIFICATIONS_RESOURCES_LIST_CHANGED, None),
            Self::Resource(uri) => Notification::new(method::NOTIFICATIONS_RESOURCES_UPDATED, params(uri)),
        }
    }
}

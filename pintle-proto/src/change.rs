use pintle_types::{Notification, method};

/// Something of a server's that is not what it was: what the server tells, and what the client hears.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and of templates.
    Resources,
    /// What one resource holds. It may be a part of the one that was subscribed to.
    Resource(Box<str>),
}

impl Change {
    /// What a notification says has changed, if it says so at all.
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
}

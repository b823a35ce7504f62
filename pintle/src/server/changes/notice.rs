use std::{fmt, num::NonZeroU64, sync::Arc};

use pintle_types::RawObject;
use serde_json::{Value, value::to_raw_value};

use crate::server::Principal;

/// A notification that an extension sends to its listeners.
///
/// It goes to the subscriptions whose filter has `member`, and to the sessions that declared the extension and are
/// [granted](crate::server::Installation::grants) something of it. A slow listener does not delay others: it may miss notices,
/// but the latest one of a [`key`](Self::key) is never dropped in favour of an earlier one.
#[derive(Clone)]
pub struct Notice {
    pub(crate) member: String,
    pub(crate) method: String,
    pub(crate) params: RawObject,
    pub(crate) key: Option<String>,
    /// The id of the task that it is about.
    pub(crate) task: Option<String>,
    /// The number of the session that it is for, if it is for one.
    pub(crate) session: Option<NonZeroU64>,
    /// Whether it comes from a provider that is no mounted server, so that its URIs are those of the provider.
    pub(crate) is_provided: bool,
    fits: Option<Arc<Fits>>,
    visible: Option<Arc<Visible>>,
}

type Fits = dyn Fn(&Value) -> bool + Send + Sync;
type Visible = dyn Fn(Principal<'_>) -> bool + Send + Sync;

impl Notice {
    /// Creates a notification for the listeners whose filter has `member`. Params that are not an object are sent as `{"value": …}`.
    pub fn new(member: impl Into<String>, method: impl Into<String>, params: impl Into<Value>) -> Self {
        let params = match params.into() {
            Value::Object(params) => RawObject::from_serialize(&params),
            other => RawObject::from_serialize(&serde_json::json!({ "value": other })),
        };
        let (params, member, method) = (params.expect("a value prints"), member.into(), method.into());
        let (key, task, session, is_provided) = (None, None, None, false);
        Self { member, method, params, key, task, session, is_provided, fits: None, visible: None }
    }

    /// Restricts the notification to listeners that are granted a matching value: what a subscription's filter has as `member`, or what the
    /// extension [grants](crate::server::Installation::grants) of it. A session wants `true`, and is granted that if nobody decides.
    ///
    /// ```
    /// use pintle::server::Notice;
    ///
    /// // The extension grants each listener its own name: `.grants(|_, _, principal| principal.map(Into::into))`.
    /// let notice = Notice::new("mail", "notifications/mail/new", 3).to(|granted| granted == "ann");
    /// ```
    #[must_use]
    pub fn to(mut self, fits: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.fits = Some(Arc::new(fits));
        self
    }

    /// Restricts the notification to the listeners of some callers, whatever they were granted.
    ///
    /// ```
    /// use pintle::server::{Notice, Principal};
    ///
    /// let notice = Notice::new("mail", "notifications/mail/new", 3).visible_to(|caller| caller == Principal::Named("ann"));
    /// ```
    #[must_use]
    pub fn visible_to(mut self, visible: impl Fn(Principal<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.visible = Some(Arc::new(visible));
        self
    }

    /// Restricts the notification to the listeners that are granted a list with the id of a task, which is also its
    /// [key](Self::key), and the member `taskId` of its params.
    ///
    /// Clients of a server that this one is mounted in know the task by another id. They are sent the notification with that one, if their
    /// subscription names it in `taskIds`.
    ///
    /// ```
    /// use pintle::server::Notice;
    /// use serde_json::json;
    ///
    /// let params = json!({ "taskId": "t-1", "line": "compiling" });
    /// let notice = Notice::new("taskIds", "notifications/tasks/output", params).about_task("t-1");
    /// ```
    #[must_use]
    pub fn about_task(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        self.params = self.params.with("taskId", &to_raw_value(&id).expect("a string prints"));
        self.key = Some(id.clone());
        self.task = Some(id);
        self
    }

    /// Returns the task that it is about, if it is about one.
    pub fn task_id(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// Sets the key. Among pending notices with the same key, only the latest is sent.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sends the notification to the session of this number, without a subscription.
    #[must_use]
    pub fn in_session(mut self, number: u64) -> Option<Self> {
        self.session = Some(NonZeroU64::new(number)?);
        Some(self)
    }

    pub(crate) fn of_provider(mut self) -> Self {
        self.is_provided = true;
        self
    }

    /// Returns the bytes that wait with it.
    pub(super) fn bytes(&self) -> usize {
        self.params.as_str().len()
    }

    /// Returns whether the listeners of a caller may receive it.
    pub(crate) fn is_visible_to(&self, caller: Principal<'_>) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible(caller))
    }

    /// Returns whether a listener that was granted this receives it.
    pub(crate) fn is_for(&self, granted: Option<&Value>) -> bool {
        let names = |granted: &Value, task: &str| {
            granted.as_array().is_some_and(|ids| ids.iter().any(|id| id.as_str() == Some(task)))
        };
        granted.is_some_and(|granted| {
            self.task.as_deref().is_none_or(|task| names(granted, task))
                && self.fits.as_ref().is_none_or(|fits| fits(granted))
        })
    }
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notice")
            .field("method", &self.method)
            .field("member", &self.member)
            .finish_non_exhaustive()
    }
}

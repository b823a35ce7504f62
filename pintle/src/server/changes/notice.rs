use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::server::Principal;

/// A notification that an extension sends to its listeners.
///
/// It goes to the subscriptions whose filter has `member`, and to the sessions that declared the extension and are
/// [granted](crate::server::Installation::grants) something of it. A slow listener does not delay others: it may miss notices,
/// but the latest one of a [`key`](Self::key) is never dropped in favour of an earlier one.
pub struct Notice {
    pub(crate) member: String,
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) key: Option<String>,
    fits: Option<Arc<Fits>>,
    visible: Option<Arc<Visible>>,
}

type Fits = dyn Fn(&Value) -> bool + Send + Sync;
type Visible = dyn Fn(Principal<'_>) -> bool + Send + Sync;

impl Notice {
    /// Creates a notification for the listeners whose filter has `member`. Params that are not an object are sent as `{"value": …}`.
    pub fn new(member: impl Into<String>, method: impl Into<String>, params: impl Into<Value>) -> Self {
        let params = match params.into() {
            Value::Object(params) => Value::Object(params),
            other => serde_json::json!({ "value": other }),
        };
        Self { member: member.into(), method: method.into(), params, key: None, fits: None, visible: None }
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

    /// Sets the key. Among pending notices with the same key, only the latest is sent.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Returns whether the listeners of a caller may receive it.
    pub(crate) fn is_visible_to(&self, caller: Principal<'_>) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible(caller))
    }

    /// Returns whether a listener that was granted this receives it.
    pub(crate) fn is_for(&self, granted: Option<&Value>) -> bool {
        granted.is_some_and(|granted| self.fits.as_ref().is_none_or(|fits| fits(granted)))
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

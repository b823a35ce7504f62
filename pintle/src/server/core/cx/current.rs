use std::cell::RefCell;

use super::WeakCx;
use crate::server::Cx;

thread_local! {
    /// The calls whose code runs on this thread, the innermost last, each with the span that entered it.
    static CURRENT: RefCell<Vec<(Option<u64>, WeakCx)>> = const { RefCell::new(Vec::new()) };
}

/// Marks a call as the current one of this thread, until this is dropped.
pub(crate) struct Here(());

impl Here {
    /// Returns `None` if the client receives no log messages.
    pub(crate) fn new(cx: &Cx) -> Option<Self> {
        cx.wants_any_log().then(|| {
            enter(None, cx.downgrade());
            Self(())
        })
    }
}

impl Here {
    /// Continues a call on another thread.
    pub(crate) fn of(call: WeakCx) -> Self {
        enter(None, call);
        Self(())
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        leave(None);
    }
}

pub(crate) fn enter(span: Option<u64>, call: WeakCx) {
    // Fails only while the thread ends.
    let _ = CURRENT.try_with(|current| {
        if let Ok(mut current) = current.try_borrow_mut() {
            current.push((span, call));
        }
    });
}

pub(crate) fn leave(span: Option<u64>) {
    let _ = CURRENT.try_with(|current| {
        if let Ok(mut current) = current.try_borrow_mut()
            && let Some(at) = current.iter().rposition(|(found, _)| *found == span)
        {
            current.remove(at);
        }
    });
}

/// Returns the call whose code runs on this thread.
pub(crate) fn current() -> Option<WeakCx> {
    CURRENT.try_with(|current| current.try_borrow().ok()?.last().map(|(_, call)| call.clone())).ok().flatten()
}

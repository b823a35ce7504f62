//! Sending without a turn of the driver's task.
//!
//! Between two polls, the driver of a client lies in a slot: a caller sends its request there, and writes it at once if no other call is open.
//! If the driver is in use, or other requests are queued, the request goes through the queue.

use std::{fmt, future::poll_fn, sync::Arc, task::Context};

use tokio::runtime::Handle;

use super::{CallRequest, Driver, DriverExit, polled_slot::PolledSlot};

/// Sends requests from the task of the caller, without waking the driver's task for them (see `bench/LEDGER.md`).
///
/// Between two polls the driver lies in a slot. A caller that finds it there sends its request and writes it; any other
/// request goes through the driver's queue.
pub(in crate::client) struct DirectSend {
    slot: PolledSlot<Box<Driver>>,
    /// The runtime of the driver's task: timers that a request starts belong there, whichever task sends it.
    runtime: Handle,
}

impl DirectSend {
    /// Creates it without a driver. Called in the runtime that will run the driver.
    pub(in crate::client) fn new() -> Self {
        Self { slot: PolledSlot::new(), runtime: Handle::current() }
    }

    /// Sends a request if the driver is in the slot and has room; otherwise returns it.
    pub(in crate::client) fn send<'a>(&self, ask: CallRequest<'a>) -> Option<CallRequest<'a>> {
        let mut ask = Some(ask);
        // A custom transport may panic: that ends the connection, and does not unwind into the caller.
        self.slot.try_use(|driver, waker| {
            if driver.has_room()
                && let Some(ask) = ask.take()
            {
                let _entered = self.runtime.enter();
                driver.ask(ask);
                driver.write_soon(&mut Context::from_waker(waker));
            }
        });
        ask
    }
}

impl fmt::Debug for DirectSend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectSend").finish_non_exhaustive()
    }
}

/// The [`DirectSend`] of the driver's own task. Dropping it drops the driver.
pub(super) struct DriverSlot(pub(super) Arc<DirectSend>);

impl DriverSlot {
    /// Puts the driver into the slot and polls it there, until something takes it out. `None` if it is gone.
    pub(super) async fn run(&self, driver: Box<Driver>) -> Option<(DriverExit, Box<Driver>)> {
        self.0.slot.put(driver);
        poll_fn(|cx| self.0.slot.poll(cx, |driver, cx| driver.poll_turn(cx))).await
    }
}

impl Drop for DriverSlot {
    fn drop(&mut self) {
        drop(self.0.slot.take());
    }
}

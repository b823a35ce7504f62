use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::wake_set::{SlotWaker, WakeSet};

/// A set of futures that one task polls, each only when it was woken.
///
/// It saves a task per request, its wake-up, and a queue for its result. All futures have the same type, so that a new one is
/// written where a finished one was, without an allocation.
pub(in crate::client::http) struct FutureSet<A, T> {
    /// Allocates memory for another future.
    room: Box<dyn Fn() -> Box<dyn FutureMemory<A, T>> + Send>,
    slots: Vec<Slot<A, T>>,
    free: Vec<usize>,
    woken: Arc<WakeSet>,
    /// The slots to be polled, and how many of them were.
    due: Vec<usize>,
    polled: usize,
    /// Wakes the task, but no future.
    aside: Arc<SlotWaker>,
}

/// Identifies a future until it completes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::client::http) struct Ticket {
    slot: usize,
    /// Slots are reused.
    turn: u64,
}

struct Slot<A, T> {
    room: Box<dyn FutureMemory<A, T>>,
    turn: u64,
    /// Marks the slot as woken. `waker` is the same, as a `Waker`.
    mark: Arc<SlotWaker>,
    waker: Waker,
}

/// Memory for a future, or none.
trait FutureMemory<A, T>: Send {
    fn start(&mut self, from: A);
    fn clear(&mut self);
    /// Pending if there is none.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T>;
}

struct FutureSlot<M, F> {
    make: M,
    future: Pin<Box<Option<F>>>,
}

impl<A, M, F> FutureMemory<A, F::Output> for FutureSlot<M, F>
where
    M: Fn(A) -> F + Send,
    F: Future + Send,
{
    fn start(&mut self, from: A) {
        self.future.set(Some((self.make)(from)));
    }

    fn clear(&mut self) {
        self.future.set(None);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.future.as_mut().as_pin_mut().map_or(Poll::Pending, |future| future.poll(cx))
    }
}

impl<A: 'static, T: 'static> FutureSet<A, T> {
    /// Creates an empty set; `make` makes each future.
    pub(in crate::client::http) fn new<F>(make: impl Fn(A) -> F + Copy + Send + 'static) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let room = Box::new(move || -> Box<dyn FutureMemory<A, T>> {
            Box::new(FutureSlot { make, future: Box::pin(None) })
        });
        let woken = Arc::new(WakeSet::new());
        // No slot has this number.
        let aside = Arc::new(SlotWaker::new(usize::MAX, true, woken.clone()));
        Self { room, slots: Vec::new(), free: Vec::new(), woken, due: Vec::new(), polled: 0, aside }
    }

    /// A waker of the task for events that concern none of the futures.
    pub(in crate::client::http) fn aside(&self) -> Waker {
        self.aside.clone().into()
    }

    /// Whether [`aside`](Self::aside) was woken, or was never checked.
    pub(in crate::client::http) fn aside_woken(&self) -> bool {
        self.aside.is_woken()
    }

    /// Whether [`aside`](Self::aside) was woken; clears that. Called before the events are looked at, so that none is missed.
    pub(in crate::client::http) fn take_aside(&self) -> bool {
        self.aside.take()
    }

    /// Adds a future. The caller has to call [`poll_next`](Self::poll_next) for it to start.
    pub(in crate::client::http) fn start(&mut self, from: A) -> Ticket {
        let free = self.free.pop().unwrap_or(self.slots.len());
        if free == self.slots.len() {
            let mark = Arc::new(SlotWaker::new(free, false, self.woken.clone()));
            self.slots.push(Slot { room: (self.room)(), turn: 0, waker: mark.clone().into(), mark });
        }
        let mut turn = 0;
        if let Some(slot) = self.slots.get_mut(free) {
            slot.room.start(from);
            turn = slot.turn;
            slot.mark.mark();
        }
        Ticket { slot: free, turn }
    }

    /// Drops a future, unless it has completed.
    pub(in crate::client::http) fn stop(&mut self, ticket: Ticket) {
        if let Some(slot) = self.slots.get_mut(ticket.slot)
            && slot.turn == ticket.turn
        {
            slot.clear();
            self.free.push(ticket.slot);
        }
    }

    /// Whether neither a future nor [`aside`](Self::aside) was woken since the last poll, and this task will be woken when one
    /// is.
    pub(in crate::client::http) fn is_idle(&self, cx: &Context<'_>) -> bool {
        // Polling the futures takes the mark of `aside` out of the set, but leaves it woken.
        !self.aside_woken() && self.polled == self.due.len() && self.woken.is_idle(cx.waker())
    }

    /// Polls the woken futures until one completes, and returns its output. `None` when all were polled; only then is the task
    /// registered to be woken.
    ///
    /// The output of one future is handled before the next is polled, which can then reuse the memory that the first freed.
    pub(in crate::client::http) fn poll_next(&mut self, cx: &mut Context<'_>) -> Option<T> {
        // What wakes itself while it is polled is polled once more, and then other tasks have their turn: it may wait
        // for just that.
        for pass in 0.. {
            while let Some(at) = self.due.get(self.polled).copied() {
                self.polled += 1;
                let Some(slot) = self.slots.get_mut(at) else { continue };
                slot.mark.clear();
                if let Poll::Ready(output) = slot.room.poll(&mut Context::from_waker(&slot.waker)) {
                    slot.clear();
                    self.free.push(at);
                    return Some(output);
                }
            }
            self.due.clear();
            self.polled = 0;
            if pass == 2 {
                self.woken.yield_now(cx.waker());
                break;
            }
            if !self.woken.take(&mut self.due, cx.waker()) {
                break;
            }
        }
        None
    }
}

impl<A, T> Slot<A, T> {
    fn clear(&mut self) {
        self.room.clear();
        self.turn += 1;
    }
}

impl<A, T> fmt::Debug for FutureSet<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureSet").field("futures", &(self.slots.len() - self.free.len())).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, poll_fn},
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use tokio::sync::oneshot;

    use super::*;

    type Boxed = Pin<Box<dyn Future<Output = &'static str> + Send>>;

    fn running() -> FutureSet<Boxed, &'static str> {
        FutureSet::new(|future: Boxed| future)
    }

    async fn next(running: &mut FutureSet<Boxed, &'static str>) -> &'static str {
        poll_fn(|cx| running.poll_next(cx).map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Sends when it is dropped.
    struct NotifyOnDrop(Option<oneshot::Sender<()>>);

    impl Drop for NotifyOnDrop {
        fn drop(&mut self) {
            let _ = self.0.take().map(|notified| notified.send(()));
        }
    }

    #[tokio::test]
    async fn each_is_polled_when_it_is_woken() {
        let mut running = running();
        let polls = Arc::new(AtomicUsize::new(0));
        let (first, notified_first) = oneshot::channel::<()>();
        let (second, notified_second) = oneshot::channel::<()>();
        let counted = polls.clone();
        running.start(Box::pin(async move {
            let mut notified = notified_first;
            poll_fn(|cx| {
                counted.fetch_add(1, Ordering::Relaxed);
                Pin::new(&mut notified).poll(cx)
            })
            .await
            .unwrap();
            "first"
        }));
        running.start(Box::pin(async move {
            notified_second.await.unwrap();
            "second"
        }));
        tokio::spawn(async move { second.send(()).unwrap() });
        assert_eq!(next(&mut running).await, "second");
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        tokio::spawn(async move { first.send(()).unwrap() });
        assert_eq!(next(&mut running).await, "first");
        assert_eq!(polls.load(Ordering::Relaxed), 2);
        assert_eq!(running.slots.len(), 2);
    }

    /// A task that does nothing when it is woken.
    struct IdleTask;

    impl Wake for IdleTask {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_wake_up_that_concerns_no_future_is_not_lost_when_the_futures_are_polled() {
        let mut running = running();
        let task = Waker::from(Arc::new(IdleTask));
        let task = &mut Context::from_waker(&task);
        running.take_aside();
        assert!(running.poll_next(task).is_none());
        assert!(running.is_idle(task));
        running.aside().wake();
        assert!(running.poll_next(task).is_none());
        assert!(!running.is_idle(task), "else nobody looks at what has happened");
        assert!(running.take_aside());
        assert!(running.is_idle(task));
    }

    #[tokio::test]
    async fn what_is_stopped_is_dropped_and_its_slot_used_again() {
        let mut running = running();
        let (notified, dropped) = oneshot::channel();
        let notified = NotifyOnDrop(Some(notified));
        let old = running.start(Box::pin(async move {
            let _notified = notified;
            pending::<()>().await;
            "never"
        }));
        running.stop(old);
        dropped.await.unwrap();
        running.start(Box::pin(async { "another" }));
        // It is the name of one that has ended.
        running.stop(old);
        assert_eq!(next(&mut running).await, "another");
        assert_eq!(running.slots.len(), 1);
    }

    #[tokio::test]
    async fn what_always_wakes_itself_does_not_keep_the_task() {
        let mut running = running();
        running.start(Box::pin(async {
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            // Waits for the budget of its task, which only grows when that rests.
            for _ in 0..1000 {
                tokio::task::consume_budget().await;
            }
            "done"
        }));
        assert_eq!(next(&mut running).await, "done");
    }
}

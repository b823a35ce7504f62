//! Model checks of Pintle's hand-written wakers: `cargo test --release --manifest-path loom/Cargo.toml`.
//!
//! The modules are those of `pintle`, compiled with the locks and atomics of loom. Each test states that no wake-up is lost:
//! a task either sees an event when it polls, or is woken after its poll.

#![allow(dead_code, unused_imports, reason = "the modules are written for another crate")]

#[path = "../../pintle/src/client/driver/polled_slot.rs"]
mod polled_slot;
#[path = "../../pintle/src/client/http/connect/relay_waker.rs"]
mod relay_waker;
#[path = "../../pintle/src/client/http/transport/wake_set.rs"]
mod wake_set;

/// What `pintle::sync` is with the types of the standard library.
mod sync {
    pub(crate) use loom::sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    };
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        task::{Context, Poll, Wake, Waker},
    };

    use loom::{sync::Mutex, thread};

    use crate::{
        polled_slot::PolledSlot,
        relay_waker::RelayWaker,
        sync::{AtomicBool, Ordering},
        wake_set::{SlotWaker, WakeSet},
    };

    /// A task that counts as woken once its waker was used.
    struct Task(AtomicBool);

    impl Task {
        fn new() -> Arc<Self> {
            Arc::new(Self(AtomicBool::new(false)))
        }

        fn was_woken(&self) -> bool {
            self.0.load(Ordering::Acquire)
        }
    }

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// A source of one event that keeps the waker of the last poll, as a socket does.
    struct Source(Mutex<(bool, Option<Waker>)>);

    impl Source {
        fn new() -> Arc<Self> {
            Arc::new(Self(Mutex::new((false, None))))
        }

        fn poll(&self, waker: &Waker) -> bool {
            let mut inner = self.0.lock().unwrap();
            inner.1 = Some(waker.clone());
            inner.0
        }

        fn fire(&self) {
            let mut inner = self.0.lock().unwrap();
            inner.0 = true;
            let waker = inner.1.take();
            drop(inner);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    #[test]
    fn an_event_reaches_the_task_that_polled_last() {
        loom::model(|| {
            let (relay, source) = (Arc::new(RelayWaker::new()), Source::new());
            let waker = Waker::from(relay.clone());
            let (first, second) = (Task::new(), Task::new());
            relay.set_task(&first.clone().into());
            let mut seen = source.poll(&waker);
            let io = thread::spawn({
                let source = source.clone();
                move || source.fire()
            });
            relay.set_task(&second.clone().into());
            seen |= source.poll(&waker);
            io.join().unwrap();
            assert!(seen || second.was_woken());
        });
    }

    #[test]
    fn an_event_while_the_relay_is_muted_is_seen_by_the_poll_that_follows() {
        loom::model(|| {
            let (relay, source) = (Arc::new(RelayWaker::new()), Source::new());
            let waker = Waker::from(relay.clone());
            let task = Task::new();
            relay.set_task(&task.clone().into());
            source.poll(&waker);
            let io = thread::spawn({
                let source = source.clone();
                move || source.fire()
            });
            // A request is handed over, which wakes the connection on this thread too.
            relay.muted(|| waker.wake_by_ref());
            relay.set_task(&task.clone().into());
            let seen = source.poll(&waker);
            io.join().unwrap();
            assert!(seen || task.was_woken());
        });
    }

    /// Polls the woken slots as `FutureSet::poll_next` does, until none is left.
    fn poll_woken(set: &WakeSet, slots: &[(Arc<SlotWaker>, Arc<Source>)], task: &Waker) -> usize {
        let (mut due, mut seen) = (Vec::new(), 0);
        while set.take(&mut due, task) {
            for slot in due.drain(..) {
                let (mark, source) = &slots[slot];
                mark.clear();
                seen += usize::from(source.poll(&mark.clone().into()));
            }
        }
        seen
    }

    #[test]
    fn every_slot_that_is_woken_is_polled_or_the_task_is_woken() {
        loom::model(|| {
            let set = Arc::new(WakeSet::new());
            let slots: Vec<_> = (0..2)
                .map(|slot| (Arc::new(SlotWaker::new(slot, false, set.clone())), Source::new()))
                .collect();
            slots.iter().for_each(|(mark, _)| mark.mark());
            let task = Task::new();
            let events: Vec<_> = slots
                .iter()
                .map(|(_, source)| {
                    let source = source.clone();
                    thread::spawn(move || source.fire())
                })
                .collect();
            let mut seen = poll_woken(&set, &slots, &task.clone().into());
            events.into_iter().for_each(|event| event.join().unwrap());
            if seen < 2 {
                assert!(task.was_woken());
                seen += poll_woken(&set, &slots, &task.into());
            }
            assert!(seen >= 2, "each event is seen");
        });
    }

    #[test]
    fn a_value_is_used_by_one_at_a_time_and_its_task_sees_what_was_done() {
        // Not of loom: counts over all interleavings.
        static TIMES_USED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        loom::model(|| {
            let slot = Arc::new(PolledSlot::<Vec<u8>>::new());
            slot.put(Vec::new());
            let task = Task::new();
            let waker = Waker::from(task.clone());
            let poll = |slot: &PolledSlot<Vec<u8>>| {
                let polled = slot.poll(&mut Context::from_waker(&waker), |sent, _| match sent.len() {
                    0 => Poll::Pending,
                    sent => Poll::Ready(sent),
                });
                matches!(polled, Poll::Ready(Some((1, _))))
            };
            let mut seen = poll(&slot);
            let caller = thread::spawn({
                let slot = slot.clone();
                move || {
                    let mut used = false;
                    slot.try_use(|sent, waker| {
                        sent.push(1);
                        waker.wake_by_ref();
                        used = true;
                    });
                    used
                }
            });
            seen |= poll(&slot);
            let used = caller.join().unwrap();
            if used && !seen {
                assert!(task.was_woken());
                assert!(poll(&slot));
            }
            assert!(used || !seen);
            TIMES_USED.fetch_add(usize::from(used), Ordering::Relaxed);
        });
        assert!(TIMES_USED.load(Ordering::Relaxed) > 0);
    }
}

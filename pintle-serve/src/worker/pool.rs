use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::server::ToolError;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use super::{
    open_call::{EVENTS, RunEvent},
    runner::Runner,
    settings::WorkerSettings,
};
use crate::environment::OnStart;

/// The processes of a worker, each of which is kept by a task. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    pub(super) settings: Arc<WorkerSettings>,
    next_id: AtomicU64,
    /// One for each call that the processes have at the same time.
    places: Arc<Semaphore>,
    slots: Mutex<Vec<Slot>>,
}

/// A process that may run.
#[derive(Debug, Default)]
struct Slot {
    /// The number of its calls.
    open: Arc<AtomicUsize>,
    /// To the task that keeps it, once there is one.
    orders: Option<mpsc::Sender<Order>>,
    /// Notified when somebody does not wait for a call any more, or the pool is dropped.
    left: Arc<Notify>,
    is_stuck: Arc<AtomicBool>,
}

/// A call that a process is to run.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) id: u64,
    pub(super) line: String,
    pub(super) timeout: Duration,
    pub(super) events: mpsc::Sender<RunEvent>,
    pub(super) place: CallPlace,
}

/// A place for a call in a process, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct CallPlace {
    open: Arc<AtomicUsize>,
    _permit: OwnedSemaphorePermit,
}

/// A run of a call, which is cancelled when this is dropped.
#[derive(Debug)]
pub(super) struct WorkerRun {
    /// The messages of the worker about the call, until its end.
    pub(super) events: mpsc::Receiver<RunEvent>,
    left: Arc<Notify>,
}

impl WorkerPool {
    pub(super) fn new(settings: WorkerSettings) -> Self {
        Self {
            next_id: AtomicU64::new(1),
            places: Arc::new(Semaphore::new(settings.processes * settings.max_running)),
            slots: Mutex::new((0..settings.processes).map(|_| Slot::default()).collect()),
            settings: Arc::new(settings),
        }
    }

    /// Sets a function that is called when a process has started, if none has.
    pub(super) fn set_on_start(&mut self, on_start: &OnStart) {
        if let Some(settings) = Arc::get_mut(&mut self.settings) {
            settings.environment.set_on_start(on_start.clone());
        }
    }

    /// Has a process run a call, whose line is made with its number. Waits for a place.
    pub(super) async fn run(
        &self,
        line: impl FnOnce(u64) -> Result<String, ToolError>,
        timeout: Duration,
    ) -> Result<WorkerRun, ToolError> {
        let permit = self.places.clone().acquire_owned().await?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = line(id)?;
        let ended = || ToolError::new(format!("worker `{}` has ended: call again", self.settings.name));
        let (place, orders, left) = self.choose(permit).ok_or_else(ended)?;
        let (sender, events) = mpsc::channel(EVENTS);
        let order = Order { id, line, timeout, events: sender, place };
        match orders.send(order).await {
            Ok(()) => Ok(WorkerRun { events, left }),
            Err(_) => Err(ended()),
        }
    }

    /// Chooses the process with the fewest calls, and of several one that has a task. One that is stuck comes last.
    fn choose(&self, permit: OwnedSemaphorePermit) -> Option<(CallPlace, mpsc::Sender<Order>, Arc<Notify>)> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let load = |slot: &&mut Slot| {
            let is_stuck = slot.is_stuck.load(Ordering::Relaxed);
            (is_stuck, slot.open.load(Ordering::Relaxed), slot.orders.is_none())
        };
        let slot = slots.iter_mut().min_by_key(load)?;
        let running = slot.orders.take().filter(|orders| !orders.is_closed());
        let orders = running.unwrap_or_else(|| {
            // One that waits until what was sent before is written.
            let (sender, orders) = mpsc::channel(1);
            let (left, is_stuck) = (slot.left.clone(), slot.is_stuck.clone());
            tokio::spawn(Runner::new(self.settings.clone(), orders, left, is_stuck).run());
            sender
        });
        slot.orders = Some(orders.clone());
        slot.open.fetch_add(1, Ordering::Relaxed);
        Some((CallPlace { open: slot.open.clone(), _permit: permit }, orders, slot.left.clone()))
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        let slots = self.slots.get_mut().unwrap_or_else(PoisonError::into_inner);
        for slot in slots {
            slot.orders = None;
            slot.left.notify_one();
        }
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for WorkerRun {
    fn drop(&mut self) {
        self.events.close();
        self.left.notify_one();
    }
}

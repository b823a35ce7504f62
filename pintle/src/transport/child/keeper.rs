use std::{
    any::Any,
    convert::Infallible,
    future::{Future, pending, poll_fn},
    io,
    pin::pin,
    process::ExitStatus,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use tokio::{
    io::{copy, sink},
    process::Child as Process,
    runtime::Handle,
    sync::{oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    ChildCommand, Exit, Stage, command::ExitCallback, counted::Counted, group::ProcessGroup,
    stderr::LastWords,
};
use crate::transport::{Stream, stream::BoxReader};

/// Starts the program and the task that sees it to its end.
pub(super) fn start(command: &ChildCommand) -> io::Result<(Stream, Kept)> {
    if Handle::try_current().is_err() {
        return Err(io::Error::other("a child process needs a tokio runtime: start it in an `async fn`"));
    }
    let mut process = command.prepare().spawn().map_err(|error| command.explain(&error))?;
    let id = process.id().unwrap_or_default();
    let group = Arc::new(ProcessGroup::of(id));
    let started = command.on_start.as_ref().map(|on_start| on_start(id));
    let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(io::Error::other("the child's streams are not pipes"));
    };
    #[cfg(target_os = "linux")]
    let input = Some(std::os::fd::AsFd::as_fd(&stdin).try_clone_to_owned()?);
    let last_words = LastWords::default();
    let mut listening = JoinSet::new();
    let stderr = process.stderr.take().map(|reader| Counted { reader, on_read: command.on_output.clone() });
    if let Some(listen) = command.stderr.listen(stderr, &last_words) {
        listening.spawn(listen);
    }
    let (order, ordered) = oneshot::channel();
    let (tx, state) = watch::channel(ChildState::default());
    let keeper = Keeper {
        process,
        group: group.clone(),
        listening,
        grace: command.grace,
        state: tx,
        on_exit: command.on_exit.clone(),
        _started: started,
    };
    crate::runtime::spawn(keeper.keep(ordered));
    let kept = Kept {
        id,
        group,
        state,
        order: Some(order),
        #[cfg(target_os = "linux")]
        input,
        last_words,
    };
    let stream = Stream::new(Counted { reader: stdout, on_read: command.on_output.clone() }, stdin);
    let stream = match command.limit {
        Some(limit) => stream.limit(limit),
        None => stream,
    };
    Ok((stream, kept))
}

/// The handle of a process that is supervised by a task.
pub(super) struct Kept {
    id: u32,
    group: Arc<ProcessGroup>,
    state: watch::Receiver<ChildState>,
    order: Option<oneshot::Sender<BoxReader>>,
    /// A duplicate of the pipe to its standard input, to see how much of it is unread.
    #[cfg(target_os = "linux")]
    input: Option<std::os::fd::OwnedFd>,
    last_words: LastWords,
}

#[derive(Clone, Copy, Debug, Default)]
struct ChildState {
    /// How the process exited, once it has.
    exit: Option<Exit>,
    /// Whether its process group is empty too.
    over: bool,
}

impl Kept {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        self.state.borrow().exit
    }

    pub(super) fn last_words(&self) -> Option<String> {
        self.last_words.get()
    }

    /// Returns the number of unread bytes in the pipe to its standard input, where the system reports it.
    pub(super) fn unread(&self) -> Option<u64> {
        #[cfg(target_os = "linux")]
        return rustix::io::ioctl_fionread(self.input.as_ref()?).ok();
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Leaves the pipe to its standard input to the writer, so that it is closed when that is dropped.
    pub(super) fn leave_input(&mut self) {
        #[cfg(target_os = "linux")]
        drop(self.input.take());
    }

    /// Waits for the process to exit.
    pub(super) fn exited(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut state = self.state.clone();
        async move {
            // The keeper left with its runtime: nothing more is to be learnt.
            let _ = state.wait_for(|state| state.exit.is_some()).await;
        }
    }

    /// Waits until all is gone.
    pub(super) fn over(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut state = self.state.clone();
        async move {
            let state = state.wait_for(|state| state.over).await;
            let exit = state.ok().and_then(|state| state.exit);
            exit.unwrap_or(Exit { status: None, stage: Stage::Killed })
        }
    }

    /// Has it ended in stages. Its output is read on, so that it does not fail at saying goodbye.
    pub(super) fn end(&mut self, output: BoxReader) {
        self.leave_input();
        if let Some(order) = self.order.take() {
            // The keeper is done if it does not listen.
            let _ = order.send(output);
        }
    }

    pub(super) fn kill(&self) {
        self.group.kill();
    }
}

struct Keeper {
    process: Process,
    group: Arc<ProcessGroup>,
    listening: JoinSet<()>,
    grace: Duration,
    state: watch::Sender<ChildState>,
    on_exit: Option<ExitCallback>,
    /// The value of `on_start`, which is dropped when all is gone.
    _started: Option<Box<dyn Any + Send + Sync>>,
}

/// Maximum time until a killed process is gone. It takes longer only if it hangs in the kernel.
const KILLED: Duration = Duration::from_secs(2);
/// How long the end of standard error is awaited after all processes are gone.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// First and maximum interval of checking whether a group is empty: the system does not notify.
const LOOK: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(100)];

impl Keeper {
    async fn keep(mut self, ordered: oneshot::Receiver<BoxReader>) {
        // An exit that happened is reported as such, even if the order comes at the same moment.
        let (status, stage) = match race(self.process.wait(), ordered).await {
            First(status) => (status.ok(), Stage::Exited),
            Second(output) => self.end(output.ok()).await,
        };
        // Now, because the group's number is free as soon as it is empty.
        let left_behind = self.group.is_alive();
        // Before the status is told, so that the reason is there with it.
        let _ = timeout(LAST_WORDS, self.listening.join_next()).await;
        let mut exit = Exit { status, stage };
        self.state.send_modify(|state| state.exit = Some(exit));
        if left_behind {
            exit.stage = self.sweep(stage).await;
        }
        let _ = timeout(LAST_WORDS, self.listening.join_next()).await;
        if let Some(on_exit) = &self.on_exit {
            on_exit(&exit);
        }
        self.state.send_replace(ChildState { exit: Some(exit), over: true });
    }

    /// Ends the process, in stages.
    async fn end(&mut self, output: Option<BoxReader>) -> (Option<ExitStatus>, Stage) {
        let drain = async {
            if let Some(mut output) = output {
                // Whether it ends or fails, there is nothing more to read.
                let _ = copy(&mut output, &mut sink()).await;
            }
            pending::<Infallible>().await
        };
        let (process, group, grace) = (&mut self.process, &self.group, self.grace);
        let stages = async {
            for stage in [Stage::Closed, Stage::Terminated, Stage::Killed] {
                let limit = match stage {
                    Stage::Terminated if cfg!(not(unix)) => continue,
                    Stage::Terminated => {
                        group.terminate();
                        grace
                    }
                    Stage::Killed => {
                        group.kill();
                        // Fails if it is gone already.
                        let _ = process.start_kill();
                        KILLED
                    }
                    Stage::Closed | Stage::Exited => grace,
                };
                if let Ok(status) = timeout(limit, process.wait()).await {
                    return (status.ok(), stage);
                }
            }
            (None, Stage::Killed)
        };
        match race(stages, drain).await {
            First(ended) => ended,
            Second(never) => match never {},
        }
    }

    /// Ends the processes that it left behind.
    async fn sweep(&self, stage: Stage) -> Stage {
        let mut reached = stage;
        if stage < Stage::Killed {
            self.group.terminate();
            reached = Stage::Terminated;
            self.until_empty(self.grace).await;
        }
        if self.group.is_alive() {
            self.group.kill();
            reached = Stage::Killed;
            self.until_empty(KILLED).await;
        }
        self.group.set_over();
        reached
    }

    async fn until_empty(&self, limit: Duration) {
        let start = Instant::now();
        let [mut pause, max_pause] = LOOK;
        while self.group.is_alive() && start.elapsed() < limit {
            sleep(pause.min(limit)).await;
            pause = max_pause.min(pause * 2);
        }
    }
}

use Winner::{First, Second};

pub(super) enum Winner<A, B> {
    First(A),
    Second(B),
}

/// Returns the output of the future that is ready first; `first` wins a tie. (`tokio::select!` would need a macro crate.)
pub(super) async fn race<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> Winner<A, B> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(first) => Poll::Ready(First(first)),
        Poll::Pending => second.as_mut().poll(cx).map(Second),
    })
    .await
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Only if the runtime stopped before all was over.
        self.group.kill();
    }
}

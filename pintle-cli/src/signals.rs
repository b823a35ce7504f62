//! Signals that end the command. They are received in a thread of their own, so that the command ends whatever the others do.

use std::{
    process,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::sync::watch;

use crate::failure::Exit;

/// The time in which a verb has to take notice of a signal.
const NOTICE: Duration = Duration::from_secs(1);
/// The time that a verb has to end, if it does not handle signals itself.
const END: Duration = Duration::from_secs(5);

static ARRIVED: LazyLock<watch::Sender<Arrived>> = LazyLock::new(|| watch::Sender::new(Arrived::default()));
/// The number of signals that the verb has taken notice of.
static NOTICED: AtomicUsize = AtomicUsize::new(0);

/// The signals that have arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    count: usize,
    last: Option<Exit>,
}

/// The meaning of signals to a verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalPolicy {
    /// Whether the verb goes on after Ctrl-C, or decides when it ends. Otherwise the second one ends the process.
    pub(crate) is_handled: bool,
    /// Whether the verb has calls to complete when it is asked to end, for as long as it decides.
    pub(crate) drains: bool,
    /// Whether `SIGHUP` ends the verb.
    pub(crate) ends_on_hangup: bool,
}

/// Waits for Ctrl-C, or for another signal that ends the command, of which nobody has taken notice yet. The programs that the command
/// has started would be left behind if it ended at once.
pub(crate) async fn interrupted() {
    let is_new = |arrived: &Arrived| arrived.count > NOTICED.load(Ordering::Acquire);
    // The sender is never dropped.
    if let Ok(arrived) = ARRIVED.subscribe().wait_for(is_new).await {
        NOTICED.store(arrived.count, Ordering::Release);
    }
}

/// Returns how the command ends after the last signal, and whether that was the only one. `None` if there was none.
pub(crate) fn exit() -> Option<(Exit, bool)> {
    let Arrived { count, last } = *ARRIVED.borrow();
    last.map(|exit| (exit, count == 1))
}

/// Receives signals from now on.
pub(crate) fn listen(policy: SignalPolicy) {
    // Dropped when they are received, or cannot be: then they end the process.
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    let receive = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(receive(policy, ready));
        }
    };
    let is_started = thread::Builder::new().name("signals".to_owned()).spawn(receive).is_ok();
    if is_started {
        let _ = is_ready.recv();
    }
}

#[cfg(unix)]
async fn receive(policy: SignalPolicy, ready: std::sync::mpsc::Sender<()>) {
    use tokio::signal::unix::{SignalKind, signal};

    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    let mut hangup = policy.ends_on_hangup.then(|| signal(SignalKind::hangup()).ok()).flatten();
    drop(ready);
    loop {
        let hangup = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let exit = tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
            _ = hangup => Exit::Terminated,
        };
        policy.arrive(exit);
    }
}

#[cfg(not(unix))]
async fn receive(policy: SignalPolicy, ready: std::sync::mpsc::Sender<()>) {
    drop(ready);
    while tokio::signal::ctrl_c().await.is_ok() {
        policy.arrive(Exit::Interrupted);
    }
}

impl SignalPolicy {
    /// Tells the verb of a signal, and ends the process if the verb does not.
    fn arrive(self, exit: Exit) {
        let before = ARRIVED.borrow().count;
        if before > NOTICED.load(Ordering::Acquire) || before > 0 && !self.is_handled {
            process::exit(exit.code().into());
        }
        ARRIVED.send_modify(|arrived| *arrived = Arrived { count: before + 1, last: Some(exit) });
        tokio::spawn(async move {
            tokio::time::sleep(NOTICE).await;
            if NOTICED.load(Ordering::Acquire) <= before {
                process::exit(exit.code().into());
            }
            if !self.is_handled || exit == Exit::Terminated && !self.drains {
                tokio::time::sleep(END.saturating_sub(NOTICE)).await;
                process::exit(exit.code().into());
            }
        });
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::{Child, Command, Stdio},
    };

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    const BUSY: &str = "PINTLE_TEST_BUSY";

    /// Not a test, but the process of one: its only thread is busy for ever.
    #[test]
    fn a_busy_process() {
        if std::env::var_os(BUSY).is_some() {
            listen(SignalPolicy { is_handled: false, drains: false, ends_on_hangup: true });
            eprintln!("busy");
            loop {
                std::hint::spin_loop();
            }
        }
    }

    fn busy() -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "signals::tests::a_busy_process", "--nocapture"]).env(BUSY, "1");
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "busy"));
        process
    }

    #[test]
    fn a_busy_command_ends_all_the_same() {
        for (signals, code) in
            [(&[Signal::TERM][..], 143), (&[Signal::HUP], 143), (&[Signal::INT, Signal::INT], 130)]
        {
            let mut process = busy();
            for signal in signals {
                // It may have ended after the first.
                let _ = kill_process(Pid::from_child(&process), *signal);
            }
            assert_eq!(process.wait().unwrap().code(), Some(code), "{signals:?}");
        }
    }
}

//! Signals that end the command.

/// Waits for Ctrl-C, or for a signal that would end the process: the programs that it has started would be left behind.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut hangup) = signal(SignalKind::hangup()) {
            return tokio::select! {
                () = terminated() => {}
                _ = hangup.recv() => {}
            };
        }
    }
    terminated().await;
}

/// Waits for Ctrl-C or `SIGTERM`, for a command to which `SIGHUP` is something else.
pub(crate) async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            };
        }
    }
    // Where it cannot be waited for, it ends the process.
    let _ = tokio::signal::ctrl_c().await;
}

//! Signals that end the command.

/// Waits for Ctrl-C, or for a signal that would end the process: the programs that it has started would be left behind.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let (Ok(mut terminate), Ok(mut hangup)) =
            (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        {
            return tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            };
        }
    }
    // Where it cannot be waited for, it ends the process.
    let _ = tokio::signal::ctrl_c().await;
}

use pintle::types::schema::LoggingLevel;
use serde_json::json;
use tokio::sync::mpsc;

use super::presenter::{Era, Presenter, client};

pub(super) async fn run(tour: &mut Presenter<'_>) -> pintle::Result<()> {
    tour.chapter("Progress and log messages")?;
    tour.paragraph("A long call can send progress and log messages to clients that requested them:")?;
    tour.source(include_str!("../demo/sailing.rs"), "async fn sail")?;
    tour.paragraph(
        "Without a session, each request contains the log level that the client wants. With a session, the client sets it \
         once, after the handshake.",
    )?;
    for &era in tour.eras() {
        let connection = tour.connect_unrecorded(client().log_level(LoggingLevel::Info), era).await?;
        tour.era(&connection, era)?;
        connection.call("sail").args(json!({"to": "lerwick"})).on_progress(|_| ()).send().await?;
        tour.show()?;
        connection.close().await;
    }

    tour.chapter("Cancelling")?;
    tour.paragraph("Dropping a call cancels it: the client drops the future, and the server drops the handler without a response.")?;
    tour.source(include_str!("../demo/sailing.rs"), "async fn anchor")?;
    let connection = tour.connect_unrecorded(client(), Era::Stateless).await?;
    let (holds, mut held) = mpsc::channel(1);
    let call = connection.call("anchor").on_progress(move |_| {
        // The first notification is sufficient.
        let _ = holds.try_send(());
    });
    tokio::select! {
        ended = call.send() => drop(ended?),
        _ = held.recv() => {}
    }
    // The cancellation has been processed when the next call is answered.
    connection.call_tool("post", json!({"text": "Calm sea."})).await?;
    tour.show()?;
    tour.note(format_args!("anchors weighed by the handler's `drop`: {}", tour.harbour.weighed()))?;
    connection.close().await;
    Ok(())
}

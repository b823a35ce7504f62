use pintle::types::schema::LoggingLevel;
use serde_json::json;
use tokio::sync::mpsc;

use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("Progress and log messages")?;
    stage.say(
        "A call that takes its time may tell how far it is, and what happens, to those who asked for it:",
    )?;
    stage.source(include_str!("../demo/sailing.rs"), "async fn sail")?;
    stage.say(
        "Which messages a client wants to hear goes with each request, where there is no session. Where there is one it \
         is said once, after the handshake.",
    )?;
    for era in Era::BOTH {
        let connection = stage.connect_quietly(client().log_level(LoggingLevel::Info), era).await?;
        stage.era(&connection, era)?;
        connection.call("sail").args(json!({"to": "lerwick"})).on_progress(|_| ()).send().await?;
        stage.show()?;
        connection.close().await;
    }

    stage.chapter("Cancelling")?;
    stage.say("To stop waiting is to cancel: the client drops the call, the server drops the handler, no answer is owed.")?;
    stage.source(include_str!("../demo/sailing.rs"), "async fn anchor")?;
    let connection = stage.connect_quietly(client(), Era::Stateless).await?;
    let (holds, mut held) = mpsc::channel(1);
    let call = connection.call("anchor").on_progress(move |_| {
        // The first is enough.
        let _ = holds.try_send(());
    });
    tokio::select! {
        ended = call.send() => drop(ended?),
        _ = held.recv() => {}
    }
    // What was said before this has been heard when this is answered.
    connection.call_tool("post", json!({"text": "Calm sea."})).await?;
    stage.show()?;
    stage.note(format_args!("anchors weighed, by the handler's `drop`: {}", stage.harbour.weighed()))?;
    connection.close().await;
    Ok(())
}

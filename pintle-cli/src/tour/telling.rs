use pintle::types::schema::LoggingLevel;
use serde_json::json;
use tokio::sync::mpsc;

use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("Progress and log messages")?;
    stage.say(
        "A call that takes its time may tell how far it is, and what happens, to those who asked for it:",
    )?;
    for era in Era::BOTH {
        let connection = stage.connect_quietly(client().log_level(LoggingLevel::Info), era).await?;
        stage.era(&connection, era)?;
        connection.call("sail").args(json!({"to": "lerwick"})).on_progress(|_| ()).send().await?;
        stage.show()?;
        connection.close().await;
    }
    stage.gap()?;
    stage.say(
        "The handler says `cx.progress(..)` and `cx.log(..)`. The level of messages goes with the request in one era; in \
         the other it was set once, after the handshake.",
    )?;

    stage.chapter("Cancelling")?;
    stage.say("To stop waiting is to cancel: the client drops the call, the server drops the handler, and no answer comes.")?;
    stage.gap()?;
    let connection = stage.connect_quietly(client(), Era::Stateless).await?;
    let (holds, mut held) = mpsc::channel(1);
    let call = connection.call("anchor").on_progress(move |_| drop(holds.try_send(())));
    tokio::select! {
        _ = call.send() => {}
        _ = held.recv() => {}
    }
    // What was said before this has been heard when this is answered.
    connection.call_tool("tide", json!({"port": "bergen", "hour": 4})).await?;
    stage.show()?;
    stage.note(format_args!("anchors weighed, by the handler's `drop`: {}", stage.harbour.weighed()))?;
    connection.close().await;
    Ok(())
}

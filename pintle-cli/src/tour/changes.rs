use pintle::client::{Change, Changes, Event};
use serde_json::json;

use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("Changes")?;
    stage.say(
        "What a server offers may change while it runs, and so may what a resource holds. With a session the lists are \
         told of unasked, and each resource is subscribed to. Without one, all that a client wants to hear of is one open \
         request; another wish is another such request, and the last one is given up.",
    )?;
    for era in Era::BOTH {
        let connection = stage.connect_quietly(client(), era).await?;
        stage.era(&connection, era)?;
        let mut changes = connection.changes().await?;
        connection.call_tool("season", ()).await?;
        until(&mut changes, Change::Tools).await;
        connection.subscribe("harbour://notice").await?;
        connection.call_tool("post", json!({"text": "Fog."})).await?;
        until(&mut changes, Change::Resource("harbour://notice".into())).await;
        stage.show()?;
        connection.close().await;
        stage.skip();
    }
    Ok(())
}

/// Waits for this change, or for the end of the connection.
async fn until(changes: &mut Changes, awaited: Change) {
    let awaited = Event::Changed(awaited);
    while let Some(event) = changes.next().await {
        if event == awaited {
            return;
        }
    }
}

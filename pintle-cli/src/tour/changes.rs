use pintle::client::{Change, Event};
use serde_json::json;

use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("Changes")?;
    stage.say(
        "What a server offers may change while it runs, and so may what a resource holds. Clients that want to know are \
         told, once for however much changed:",
    )?;
    for era in Era::BOTH {
        let connection = stage.connect_quietly(client(), era).await?;
        stage.era(&connection, era)?;
        let mut changes = connection.changes().await?;
        connection.subscribe("harbour://notice").await?;
        connection.call_tool("post", json!({"text": "Fog."})).await?;
        while changes.next().await != Some(Event::Changed(Change::Resource("harbour://notice".into()))) {}
        connection.call_tool("season", ()).await?;
        while changes.next().await != Some(Event::Changed(Change::Tools)) {}
        stage.show()?;
        drop(changes);
        connection.close().await;
        stage.skip();
    }
    Ok(())
}

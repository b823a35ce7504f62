use pintle::client::{Change, Changes, Event};
use serde_json::json;

use super::presenter::{Presenter, client};

pub(super) async fn run(tour: &mut Presenter<'_>) -> pintle::Result<()> {
    tour.chapter("Changes")?;
    tour.paragraph(
        "The catalogue and the resources of a server may change at run time. With a session, the server announces list \
         changes unasked, and the client subscribes to each resource. Without one, a single open request lists everything \
         that the client subscribes to; a new request replaces it.",
    )?;
    for &era in tour.eras() {
        let connection = tour.connect_unrecorded(client(), era).await?;
        tour.era(&connection, era)?;
        let mut changes = connection.changes().await?;
        connection.call_tool("season", ()).await?;
        until(&mut changes, Change::Tools).await;
        connection.subscribe("harbour://notice").await?;
        connection.call_tool("post", json!({"text": "Fog."})).await?;
        until(&mut changes, Change::Resource("harbour://notice".into())).await;
        tour.show()?;
        connection.close().await;
        tour.skip();
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

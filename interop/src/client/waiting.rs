use std::time::Duration;

use pintle::{
    Connection,
    client::{Change, Changes, Event},
};

use super::cells::text;
use crate::Wrong;

/// Between two looks at a server that has no way to tell.
const LOOK: Duration = Duration::from_millis(20);

/// Starts a call, cancels it once it runs, and sees on the server's side that it was.
pub(super) async fn cancelled(server: &Connection) -> Result<String, Wrong> {
    let (started, ended) = waits(server).await?;
    let begun = async {
        while waits(server).await?.0 == started {
            tokio::time::sleep(LOOK).await;
        }
        Ok::<_, Wrong>(())
    };
    tokio::select! {
        biased;
        begun = begun => begun?,
        result = server.call_tool("wait", ()) => return Err(Wrong::new(format!("it ended by itself: {result:?}"))),
    }
    while waits(server).await?.1 == ended {
        tokio::time::sleep(LOOK).await;
    }
    Ok("cancelled".to_owned())
}

/// Waits for a change.
pub(super) async fn changed(changes: &mut Changes, wanted: &Change) -> Result<String, Wrong> {
    while let Some(event) = changes.next().await {
        if event == Event::Changed(wanted.clone()) {
            return Ok("changed".to_owned());
        }
    }
    Err(Wrong::new("the connection ended"))
}

async fn waits(server: &Connection) -> Result<(usize, usize), Wrong> {
    let result = server.call_tool("waits", ()).await?;
    let text = text(&result);
    let numbers = text.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    numbers.ok_or_else(|| Wrong::new(format!("`waits` returned `{text}`")))
}

use pintle::{proto::Revision, types::schema::ContentBlock};
use serde_json::json;

use super::presenter::{Era, Presenter, client};

pub(super) async fn run(tour: &mut Presenter<'_>) -> pintle::Result<()> {
    tour.chapter("A tool")?;
    tour.paragraph(
        "A tool is a function. Its schemas are derived from the types of its arguments and its result:",
    )?;
    tour.source(include_str!("../demo/tides.rs"), "async fn tide")?;
    let connection = tour.connect_unrecorded(client(), Era::Stateless).await?;
    let tools = connection.tools().await?;
    tour.skip();
    if let Some(tide) = tools.iter().find(|tool| tool.name == "tide") {
        let tide = serde_json::to_string(tide).unwrap_or_default();
        tour.json(&format!("one of {} tools, as listed:", tools.len()), &tide)?;
    }
    connection.call_tool("tide", json!({"port": "bergen", "hour": 4})).await?;
    tour.show()?;
    tour.gap()?;
    tour.paragraph(
        "Arguments are validated before the function runs. The model can correct them with the error text:",
    )?;
    tour.gap()?;
    connection.call_tool("tide", json!({"port": "begren", "hour": 40})).await?;
    tour.show()?;
    if !tour.shows_all() {
        connection.close().await;
        return Ok(());
    }

    tour.chapter("Images and audio")?;
    tour.paragraph(
        "Results consist of blocks: text, images, audio, links. Clients without support for a kind receive text instead.",
    )?;
    tour.gap()?;
    connection.call_tool("signal", ()).await?;
    tour.show()?;
    connection.close().await;
    tour.gap()?;
    for revision in Revision::all() {
        let connection = client().revisions([revision]).connect(tour.server.in_process()?).await?;
        let blocks = connection.call_tool("signal", ()).await?.content;
        let kinds: Vec<_> = blocks.iter().map(kind).collect();
        tour.note(format_args!("{}: {}", revision.as_str(), kinds.join(", ")))?;
        connection.close().await;
    }
    Ok(())
}

fn kind(block: &ContentBlock) -> &'static str {
    match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Image(_) => "image",
        ContentBlock::Audio(_) => "audio",
        _ => "other",
    }
}

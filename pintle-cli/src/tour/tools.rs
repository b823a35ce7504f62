use pintle::{proto::Revision, types::schema::ContentBlock};
use serde_json::json;

use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("A tool")?;
    stage.say("A tool is a function. Its schemas follow from the types of its arguments and its result:")?;
    stage.source(include_str!("../demo/tides.rs"), "async fn tide")?;
    let connection = stage.connect_quietly(client(), Era::Stateless).await?;
    let tools = connection.tools().await?;
    stage.skip();
    if let Some(tide) = tools.iter().find(|tool| tool.name == "tide") {
        let tide = serde_json::to_string(tide).unwrap_or_default();
        stage.json(&format!("one of {} tools, as it is listed:", tools.len()), &tide)?;
    }
    connection.call_tool("tide", json!({"port": "bergen", "hour": 4})).await?;
    stage.show()?;
    stage.gap()?;
    stage.say(
        "Arguments are checked before the function runs. What the model gets back, it can mend by itself:",
    )?;
    stage.gap()?;
    connection.call_tool("tide", json!({"port": "begren", "hour": 40})).await?;
    stage.show()?;

    stage.chapter("Pictures and sounds")?;
    stage.say(
        "Results are blocks: text, pictures, sounds, links. Who does not know a kind gets one that it knows.",
    )?;
    stage.gap()?;
    connection.call_tool("signal", ()).await?;
    stage.show()?;
    connection.close().await;
    stage.gap()?;
    for revision in Revision::all() {
        let connection = client().revisions([revision]).connect(stage.server.in_process()?).await?;
        let blocks = connection.call_tool("signal", ()).await?.content;
        let kinds: Vec<_> = blocks.iter().map(kind).collect();
        stage.note(format_args!("{}: {}", revision.as_str(), kinds.join(", ")))?;
        connection.close().await;
    }
    Ok(())
}

fn kind(block: &ContentBlock) -> &'static str {
    match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Image(_) => "a picture",
        ContentBlock::Audio(_) => "a sound",
        _ => "something else",
    }
}

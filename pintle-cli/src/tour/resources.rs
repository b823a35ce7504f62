use pintle::types::schema::{CompletionReference, PromptReference, ResourceReference};
use serde_json::json;

use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("Resources")?;
    stage.say("What a server has to read is listed in pages and read by URI. A template stands for a whole family of URIs:")?;
    stage.gap()?;
    let connection = stage.connect_quietly(client(), Era::Stateless).await?;
    let resources = connection.resources().await?;
    stage.show()?;
    stage.note(format_args!("{} resources, on two pages", resources.len()))?;
    stage.gap()?;
    connection.read_resource("harbour://tides/lerwick/4").await?;
    stage.show()?;

    stage.chapter("Prompts, and completion")?;
    stage.say("A prompt is a text for people to start from. Its arguments complete while they are typed, as those of templates do:")?;
    stage.gap()?;
    let passage = CompletionReference::Prompt(PromptReference::new("passage"));
    connection.complete(passage, "to", "l", []).await?;
    connection.get_prompt("passage", json!({"to": "lerwick"})).await?;
    let tides = CompletionReference::Resource(ResourceReference::new("harbour://tides/{port}/{hour}"));
    connection.complete(tides, "port", "e", []).await?;
    stage.show()?;
    connection.close().await;
    Ok(())
}

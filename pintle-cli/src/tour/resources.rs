use pintle::types::schema::{CompletionReference, PromptReference, ResourceReference};
use serde_json::json;

use super::presenter::{Era, Presenter, client};

pub(super) async fn run(tour: &mut Presenter<'_>) -> pintle::Result<()> {
    tour.chapter("Resources")?;
    tour.paragraph("Resources are listed in pages and read by URI. A template describes many URIs:")?;
    tour.gap()?;
    let connection = tour.connect_unrecorded(client(), Era::Stateless).await?;
    let resources = connection.resources().await?;
    tour.show()?;
    tour.note(format_args!("{} resources, on two pages", resources.len()))?;
    tour.gap()?;
    connection.read_resource("harbour://tides/lerwick/4").await?;
    tour.show()?;

    tour.chapter("Prompts and completion")?;
    tour.paragraph("A prompt is a message template for users. Its arguments are completed while they are typed, as those of templates are:")?;
    tour.gap()?;
    let passage = CompletionReference::Prompt(PromptReference::new("passage"));
    connection.complete(passage, "to", "l", []).await?;
    connection.get_prompt("passage", json!({"to": "lerwick"})).await?;
    let tides = CompletionReference::Resource(ResourceReference::new("harbour://tides/{port}/{hour}"));
    connection.complete(tides, "port", "e", []).await?;
    tour.show()?;
    connection.close().await;
    Ok(())
}

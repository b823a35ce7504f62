use pintle::{
    Client,
    client::Answer,
    types::schema::{ContentBlock, CreateMessageResult},
};
use serde_json::{Value, json};

use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("Asking the user")?;
    stage.say(
        "A handler may ask in the middle of a call: `cx.elicit::<Stay>(\"stay\", \"Who comes, ..?\").await?`. With a \
         session that is a request to the client. Without one the call ends with a question, and the client calls again \
         with the answer; what the server has to remember travels in `requestState`, sealed.",
    )?;
    for era in Era::BOTH {
        let connection = stage.connect_quietly(answering(), era).await?;
        stage.era(&connection, era)?;
        let (begun, reserved) = (stage.harbour.begun_asking(), stage.harbour.reserved());
        connection.call_tool("berth", ()).await?;
        stage.show()?;
        let (begun, reserved) = (stage.harbour.begun_asking() - begun, stage.harbour.reserved() - reserved);
        stage.note(format_args!("handler begun: {begun}, berths reserved in `cx.once`: {reserved}"))?;
        connection.close().await;
    }

    stage.chapter("Asking for a page, the model, and places")?;
    stage.say(
        "A page is for what the client must not see, such as a payment; the model writes for the server; roots are the \
         places that the server may work in. Asked at once, they are one round:",
    )?;
    let connection = stage.connect_quietly(answering(), Era::Stateless).await?;
    stage.era(&connection, Era::Stateless)?;
    connection.call_tool("customs", ()).await?;
    stage.show()?;
    connection.close().await;
    Ok(())
}

/// The handlers are the capabilities.
fn answering() -> Client {
    client()
        .on_elicit(|_| async { Answer::accept(json!({"boat": "Tern", "nights": 3})) })
        .on_elicit_url(|_| async { Answer::Accept(Value::Null) })
        .on_sample(|_| async {
            CreateMessageResult::new("some-model", ContentBlock::text("Stiff, silver, salty, stacked, sold."))
        })
        .roots(["file:///charts/north-sea"])
}

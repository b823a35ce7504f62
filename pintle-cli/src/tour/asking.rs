use pintle::{
    Client,
    client::Answer,
    types::schema::{ContentBlock, CreateMessageResult},
};
use serde_json::{Value, json};

use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("Asking the user")?;
    stage
        .say("A handler may ask in the middle of a call. It is written once, as a straight line of code:")?;
    stage.source(include_str!("../demo/asking.rs"), "async fn berth")?;
    stage.say(
        "With a session that is a request to the client. Without one the call ends with a question, and the client calls \
         again with the answer; what the server has to remember meanwhile travels in `requestState`, sealed.",
    )?;
    for era in Era::BOTH {
        let connection = stage.connect_quietly(answering(), era).await?;
        stage.era(&connection, era)?;
        let (begun, reserved) = (stage.harbour.begun_asking(), stage.harbour.reserved());
        connection.call_tool("berth", ()).await?;
        stage.show()?;
        let (begun, reserved) = (stage.harbour.begun_asking() - begun, stage.harbour.reserved() - reserved);
        stage.note(format_args!(
            "times that the handler began: {begun}; berths that `once` reserved: {reserved}"
        ))?;
        connection.close().await;
    }

    stage.chapter("Asking for a page, the model, and places")?;
    stage.say(
        "A page is for what the client must not see, such as a payment; the model writes for the server; roots are the \
         places that it may work in. Asked for at the same time, they are one round:",
    )?;
    stage.source(include_str!("../demo/asking.rs"), "async fn customs")?;
    let connection = stage.connect_quietly(answering(), Era::Stateless).await?;
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

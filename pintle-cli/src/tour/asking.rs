use pintle::{
    Client,
    client::Answer,
    types::schema::{ContentBlock, CreateMessageResult},
};
use serde_json::{Value, json};

use super::presenter::{Era, Presenter, client};

pub(super) async fn run(tour: &mut Presenter<'_>) -> pintle::Result<()> {
    tour.chapter("Asking the user")?;
    tour
        .paragraph("A handler may request input during a call. It is written once, for clients with and without a session:")?;
    tour.source(include_str!("../demo/asking.rs"), "async fn berth")?;
    tour.paragraph(
        "With a session, the question is a request to the client. Without one, the call ends with the question, and the \
         client repeats it with the answer. The state of the call is sealed into `requestState` meanwhile.",
    )?;
    for &era in tour.eras() {
        let connection = tour.connect_unrecorded(answering(), era).await?;
        tour.era(&connection, era)?;
        let (begun, reserved) = (tour.harbour.begun_asking(), tour.harbour.reserved());
        connection.call_tool("berth", ()).await?;
        tour.show()?;
        let (begun, reserved) = (tour.harbour.begun_asking() - begun, tour.harbour.reserved() - reserved);
        tour.note(format_args!("runs of the handler: {begun}; berths reserved by `once`: {reserved}"))?;
        connection.close().await;
    }

    if !tour.shows_all() {
        return Ok(());
    }
    tour.chapter("Pages, sampling and roots")?;
    tour.paragraph(
        "A page is for data that the client must not see, such as a payment. Sampling asks the client's model. Roots are the \
         client's working directories. Requested concurrently, they need one round:",
    )?;
    tour.source(include_str!("../demo/asking.rs"), "async fn customs")?;
    let connection = tour.connect_unrecorded(answering(), Era::Stateless).await?;
    connection.call_tool("customs", ()).await?;
    tour.show()?;
    connection.close().await;
    Ok(())
}

/// Creates a client that answers every kind of request. Its handlers declare the capabilities.
fn answering() -> Client {
    client()
        .on_elicit(|_| async { Answer::accept(json!({"boat": "Tern", "nights": 3})) })
        .on_elicit_url(|_| async { Answer::Accept(Value::Null) })
        .on_sample(|_| async {
            CreateMessageResult::new("some-model", ContentBlock::text("Stiff, silver, salty, stacked, sold."))
        })
        .roots(["file:///charts/north-sea"])
}

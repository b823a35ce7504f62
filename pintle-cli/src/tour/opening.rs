use super::presenter::{Era, Presenter, client};

pub(super) async fn run(tour: &mut Presenter<'_>) -> pintle::Result<()> {
    tour.chapter("Opening a connection")?;
    tour.paragraph(
        "The newest revision has no handshake: a client may discover the server, and every request identifies the client. \
         The four older revisions start with a handshake, which opens a session. One server supports all five, on the same \
         pipe.",
    )?;
    for era in Era::BOTH {
        let connection = tour.connect(client(), era).await?;
        tour.era(&connection, era)?;
        tour.show()?;
        connection.close().await;
    }
    Ok(())
}

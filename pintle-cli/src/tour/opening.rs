use super::stage::{Era, Stage, client};

pub(super) async fn tell(stage: &mut Stage<'_>) -> pintle::Result<()> {
    stage.chapter("Hello")?;
    stage.say(
        "The newest revision has no handshake: a client may ask who is there, and every request says who asks. The four \
         older ones begin with a handshake, and remember it. One server answers all five, on the same pipe.",
    )?;
    for era in Era::BOTH {
        let connection = stage.connect(client(), era).await?;
        stage.era(&connection, era)?;
        stage.show()?;
        connection.close().await;
    }
    Ok(())
}

use std::{
    io::{self, BufRead as _, Read as _},
    thread,
};

use tokio::sync::oneshot;

use super::Player;
use crate::{failure::Failure, output::Output};

/// The largest message of a client.
const MAX_MESSAGE: u64 = 16 << 20;

/// Serves standard input and output until the input ends.
pub(super) async fn run(player: Player, output: &Output) -> Result<(), Failure> {
    let (done, served) = oneshot::channel();
    let output = output.clone();
    // Not a thread of the runtime, which would wait for it when the command is interrupted.
    thread::spawn(move || {
        // Nobody waits for it if the command was interrupted.
        let _ = done.send(serve(player, &output));
    });
    served.await.unwrap_or_else(|error| Err(Failure::internal(&error)))
}

fn serve(mut player: Player, output: &Output) -> Result<(), Failure> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    for tag in 0.. {
        line.clear();
        let read = input.by_ref().take(MAX_MESSAGE).read_until(b'\n', &mut line);
        match read {
            Ok(0) => break,
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => {}
            Err(error) => {
                let message = format!("standard input cannot be read: {error}");
                return Err(Failure::usage(message, "pintle replay --help"));
            }
        }
        for mut delivery in player.receive(&String::from_utf8_lossy(line.trim_ascii()), tag) {
            delivery.message.push(b'\n');
            output.pass_on(&delivery.message)?;
        }
    }
    Ok(())
}

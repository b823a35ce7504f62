//! A peer that answers commands of Redis as a test says.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// A peer on a port of its own, and the commands that it has got.
#[derive(Clone)]
pub(crate) struct ScriptedRedis {
    pub(crate) port: u16,
    got: Arc<Mutex<Vec<String>>>,
}

impl ScriptedRedis {
    /// Starts a peer. `answer` returns what is sent for a command, as it is on the wire; without it, that is `+OK`.
    pub(crate) async fn start(answer: impl Fn(u16, &str) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = Self { port: listener.local_addr().unwrap().port(), got: Arc::default() };
        let (serving, answer) = (peer.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (peer, answer) = (serving.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Some(command) = read(&mut stream).await {
                        peer.got.lock().unwrap().push(command.clone());
                        let answer = answer(peer.port, &command).unwrap_or_else(|| "+OK\r\n".to_owned());
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        peer
    }

    /// The commands that it has got.
    pub(crate) fn got(&self) -> Vec<String> {
        self.got.lock().unwrap().clone()
    }
}

/// Reads a command: its words, with spaces between them.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut words = Vec::new();
    for _ in 0..number(stream).await? {
        let mut word = vec![0; number(stream).await? + 2];
        stream.read_exact(&mut word).await.ok()?;
        words.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
    }
    Some(words.join(" "))
}

/// Reads the number of a line such as `*3` or `$12`.
async fn number(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim().parse().ok()
}

//! A connection to Redis that is cut in the middle of a reply.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Texts of replies, and what a client gets instead.
type Reworded = Arc<std::sync::Mutex<Vec<(Vec<u8>, Vec<u8>)>>>;

/// A proxy in front of Redis that cuts the connection when it is told to.
pub(crate) struct CutLink {
    port: u16,
    marker: Arc<std::sync::Mutex<Option<Vec<u8>>>>,
    reworded: Reworded,
    cuts: Arc<AtomicUsize>,
}

impl CutLink {
    pub(crate) async fn new(redis: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let link = Self { port, marker: Arc::default(), reworded: Arc::default(), cuts: Arc::default() };
        let (marker, reworded, cuts) = (link.marker.clone(), link.reworded.clone(), link.cuts.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", redis)).await.unwrap();
                tokio::spawn(pass(client, server, marker.clone(), reworded.clone(), cuts.clone()));
            }
        });
        link
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Has Redis carry out the next command with this text, and the connection cut in the middle of the reply.
    pub(crate) fn cut_reply_of(&self, text: &str) {
        *self.marker.lock().unwrap() = Some(text.as_bytes().to_vec());
    }

    /// Replaces words in the replies by others of the same length, as another Redis may have them.
    pub(crate) fn reword(&self, old: &str, new: &str) {
        assert_eq!(old.len(), new.len());
        self.reworded.lock().unwrap().push((old.as_bytes().to_vec(), new.as_bytes().to_vec()));
    }

    /// Returns how often the connection was cut.
    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

async fn pass(
    client: TcpStream,
    server: TcpStream,
    marker: Arc<std::sync::Mutex<Option<Vec<u8>>>>,
    reworded: Reworded,
    cuts: Arc<AtomicUsize>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let is_marked = Arc::new(AtomicBool::new(false));
    let marked = is_marked.clone();
    let requests = async move {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length) = from_client.read(&mut bytes).await {
            let Some(read) = bytes.get(..length).filter(|read| !read.is_empty()) else { break };
            let is_marked = |text: &mut Vec<u8>| read.windows(text.len()).any(|part| part == text);
            if marker.lock().unwrap().take_if(is_marked).is_some() {
                marked.store(true, Ordering::SeqCst);
            }
            if to_server.write_all(read).await.is_err() {
                break;
            }
        }
    };
    let replies = async move {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length) = from_server.read(&mut bytes).await {
            let Some(read) = bytes.get(..length).filter(|read| !read.is_empty()) else { break };
            if is_marked.load(Ordering::SeqCst) {
                // The first byte of it arrives.
                let _ = to_client.write_all(&read[..1]).await;
                cuts.fetch_add(1, Ordering::SeqCst);
                break;
            }
            let mut read = read.to_vec();
            for (old, new) in reworded.lock().unwrap().iter() {
                while let Some(at) = read.windows(old.len()).position(|part| part == old) {
                    read[at..at + old.len()].copy_from_slice(new);
                }
            }
            if to_client.write_all(&read).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = requests => {}
        () = replies => {}
    }
}

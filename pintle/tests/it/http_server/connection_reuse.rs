//! Our client and our server on sockets: connections are kept, and an answer is one write.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use pintle::server::http::{HttpServer, HttpServing};
use tokio::net::{TcpListener, TcpStream};

use crate::{
    http_server::serve::Counted,
    support::{
        eras::{ALL, R1},
        http_server::{World, connect, marked, soon},
    },
};

#[derive(Clone, Default)]
struct Counts {
    connections: Arc<AtomicUsize>,
    writes: Arc<AtomicUsize>,
}

impl Counts {
    fn take_writes(&self) -> usize {
        self.writes.swap(0, Ordering::SeqCst)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    async fn serve(&self, world: &World) -> HttpServing {
        let counts = self.clone();
        let server = HttpServer::new(world.http.clone()).tls(move |socket: TcpStream| {
            counts.connections.fetch_add(1, Ordering::SeqCst);
            let writes = counts.writes.clone();
            async move { Ok(Counted { socket, writes, vectored: true }) }
        });
        server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn two_hundred_calls_one_after_the_other() {
    for revision in ALL {
        let (world, counts) = (World::new(), Counts::default());
        let serving = counts.serve(&world).await;
        let connection = connect(revision, "c", serving.address()).await;
        soon(marked(&connection, "echo", "warm")).await.unwrap();
        let (connections, mut quickest) = (counts.connections(), Duration::MAX);
        counts.take_writes();
        for n in 0..200 {
            let (mark, start) = (n.to_string(), Instant::now());
            assert_eq!(soon(marked(&connection, "echo", &mark)).await.unwrap(), mark);
            quickest = quickest.min(start.elapsed());
        }
        // In the oldest revision an answer is two: that the message was taken, and the answer on the stream.
        let writes = if revision == R1 { 400 } else { 200 };
        assert_eq!(counts.take_writes(), writes, "{revision}");
        assert_eq!(counts.connections(), connections, "{revision}: none is new");
        // One for requests; sessions have one more, for what belongs to no request.
        assert!(connections <= 2, "{revision}: {connections}");
        // If anything waited for an acknowledgement of TCP, it would be 40 milliseconds, each time.
        assert!(quickest < Duration::from_millis(35), "{revision}: {quickest:?}");
        soon(connection.close()).await;
        world.empty().await;
        serving.shutdown(Duration::from_secs(20)).await;
    }
}

#[tokio::test]
async fn sixty_four_calls_at_once() {
    for revision in ALL {
        let (world, counts) = (World::new(), Counts::default());
        let serving = counts.serve(&world).await;
        let connection = connect(revision, "c", serving.address()).await;
        let mut waves = vec![counts.connections()];
        for wave in 0..8 {
            let calls: Vec<_> = (0..64)
                .map(|n| {
                    let (connection, mark) = (connection.clone(), format!("{wave}-{n}"));
                    tokio::spawn(async move { (marked(&connection, "echo", &mark).await.unwrap(), mark) })
                })
                .collect();
            for call in calls {
                let (came, mark) = soon(call).await.unwrap();
                assert_eq!(came, mark);
            }
            waves.push(counts.connections());
        }
        // One each; and one more each, if a call was over before its connection was free again.
        assert!(*waves.last().unwrap() <= 130, "{revision}: {waves:?} connections for 512 calls, 64 at once");
        soon(connection.close()).await;
        world.empty().await;
        serving.shutdown(Duration::from_secs(20)).await;
    }
}

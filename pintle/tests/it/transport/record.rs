use std::{
    io,
    sync::{Arc, Mutex},
};

use pintle::transport::{Direction, Record, memory};

use crate::support::transport_calls::{recv, send};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn every_message_is_written_as_a_line_and_passed_on() {
    let log = Log::default();
    let (mut server, client) = memory();
    let mut client = Record::to_writer(client, log.clone());
    send(&mut client, r#"{"id":1,"method":"ping"}"#).await;
    assert_eq!(recv(&mut server).await.unwrap(), r#"{"id":1,"method":"ping"}"#);
    send(&mut server, r#"{"id":1,"result":{}}"#).await;
    assert_eq!(recv(&mut client).await.unwrap(), r#"{"id":1,"result":{}}"#);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(log, "1 → {\"id\":1,\"method\":\"ping\"}\n2 ← {\"id\":1,\"result\":{}}\n");
}

#[tokio::test]
async fn a_function_sees_number_direction_and_bytes() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (server, mut client) = memory();
    let record = seen.clone();
    let mut server = Record::new(server, move |recorded| {
        record.lock().unwrap().push((
            recorded.number,
            recorded.direction,
            recorded.message.map(<[u8]>::to_vec),
        ));
    });
    send(&mut client, "1").await;
    recv(&mut server).await;
    send(&mut server, "2").await;
    let expected = [(1, Direction::In, Some(b"1".to_vec())), (2, Direction::Out, Some(b"2".to_vec()))];
    assert_eq!(*seen.lock().unwrap(), expected);
}

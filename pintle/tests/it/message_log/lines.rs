use std::{
    io,
    sync::{Arc, Mutex},
};

use pintle::{
    message_log::{Direction, MessageLog, MessageRecord, Payload, Side},
    transport::{TransportKind, memory},
};

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
    let mut client = MessageLog::to_writer(log.clone()).wrap(Side::Client, client);
    send(&mut client, r#"{"id":1,"method":"ping"}"#).await;
    assert_eq!(recv(&mut server).await.unwrap(), r#"{"id":1,"method":"ping"}"#);
    send(&mut server, r#"{"id":1,"result":{}}"#).await;
    assert_eq!(recv(&mut client).await.unwrap(), r#"{"id":1,"result":{}}"#);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(log, "1 → {\"id\":1,\"method\":\"ping\"}\n2 ← {\"id\":1,\"result\":{}}\n");
}

#[tokio::test]
async fn a_function_sees_the_facts_of_each_message() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (server, mut client) = memory();
    let log = MessageLog::new({
        let seen = seen.clone();
        move |record: &MessageRecord<'_>| {
            let text = match record.payload {
                Payload::Message(text) => text.to_owned(),
                other => format!("{other:?}"),
            };
            seen.lock().unwrap().push((record.number, record.connection, record.direction, text));
            assert_eq!((record.side, record.transport), (Side::Server, TransportKind::Memory));
        }
    });
    let mut server = log.wrap(Side::Server, server);
    send(&mut client, "1").await;
    recv(&mut server).await;
    send(&mut server, "2").await;
    send(&mut client, "noise").await;
    recv(&mut server).await;
    let (second, _client) = memory();
    send(&mut log.wrap(Side::Server, second), "3").await;
    let expected = [
        (1, Some(1), Direction::In, "1".to_owned()),
        (2, Some(1), Direction::Out, "2".to_owned()),
        (3, Some(1), Direction::In, "Text(\"<redacted: 5 bytes that are not JSON>\")".to_owned()),
        (4, Some(2), Direction::Out, "3".to_owned()),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_function_that_panics_does_not_end_the_connection() {
    let (server, mut client) = memory();
    let mut server = MessageLog::new(|_| panic!("on purpose")).wrap(Side::Server, server);
    for message in ["1", "2"] {
        send(&mut client, message).await;
        assert_eq!(recv(&mut server).await.unwrap(), message);
    }
}

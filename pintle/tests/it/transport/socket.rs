use pintle::transport::{listen_tcp, tcp};

use crate::support::transport_calls::{recv, send};

#[tokio::test]
async fn many_clients_connect_to_one_tcp_listener() {
    let mut listener = listen_tcp("127.0.0.1:0").await.unwrap();
    let address = listener.address().unwrap();
    for name in ["one", "two"] {
        let (client, server) = tokio::join!(tcp(address), listener.accept());
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        send(&mut client, name).await;
        assert_eq!(recv(&mut server).await.as_deref(), Some(name));
        drop(client);
        assert_eq!(recv(&mut server).await, None);
    }
}

#[cfg(unix)]
mod unix_sockets {
    use std::{fs, io, os::unix::fs::PermissionsExt, os::unix::net::UnixListener, path::PathBuf};

    use pintle::transport::{listen_unix, unix};

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("pintle-{name}-{}.sock", std::process::id()))
    }

    #[tokio::test]
    async fn a_unix_socket_is_for_its_owner_and_its_file_goes_with_it() {
        let path = path("owner");
        let mut listener = listen_unix(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (client, server) = tokio::join!(unix(&path), listener.accept());
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        send(&mut server, "hello").await;
        assert_eq!(recv(&mut client).await.unwrap(), "hello");
        drop(listener);
        assert!(!path.exists());
        // Connections outlive their listener.
        send(&mut client, "still here").await;
        assert_eq!(recv(&mut server).await.unwrap(), "still here");
    }

    #[tokio::test]
    async fn a_socket_left_behind_is_replaced_and_one_in_use_is_not() {
        let path = path("stale");
        drop(UnixListener::bind(&path).unwrap());
        let listener = listen_unix(&path).unwrap();
        let error = listen_unix(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().ends_with("is in use: stop its server or give another path"), "{error}");
        drop(listener);
        fs::write(&path, "a file").unwrap();
        let error = listen_unix(&path).unwrap_err().to_string();
        assert!(error.contains("is there and no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
        fs::remove_file(&path).unwrap();
    }

    #[tokio::test]
    async fn a_file_that_another_put_in_its_place_is_not_removed() {
        let path = path("replaced");
        let listener = listen_unix(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "not ours").unwrap();
        drop(listener);
        assert_eq!(fs::read_to_string(&path).unwrap(), "not ours");
        fs::remove_file(&path).unwrap();
    }
}

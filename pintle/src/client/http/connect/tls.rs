//! TLS as rustls has it, trusting what the system trusts.

use std::sync::Arc;

use tokio::{net::TcpStream, sync::OnceCell};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::CryptoProvider, pki_types::ServerName},
};

use super::{
    body::BoxError,
    connector::{Duplex, Encrypt, Encrypting},
};

/// A TLS connector. The certificates are loaded with the first connection.
#[derive(Default)]
pub(in crate::client::http) struct Tls(Arc<OnceCell<TlsConnector>>);

impl Encrypt for Tls {
    fn encrypt(&self, host: &str, socket: TcpStream) -> Encrypting {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let connector = self.0.clone();
        Box::pin(async move {
            let connector = connector.get_or_try_init(load).await?;
            let stream = connector.connect(name?, socket).await?;
            let stream: Box<dyn Duplex> = Box::new(stream);
            Ok(stream)
        })
    }
}

async fn load() -> Result<TlsConnector, BoxError> {
    // A few hundred files, on some systems.
    let config = tokio::task::spawn_blocking(config).await??;
    Ok(TlsConnector::from(Arc::new(config)))
}

fn config() -> Result<ClientConfig, BoxError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let message = "the system has no certificates to trust: install them (often the package `ca-certificates`), or \
                    name a file of them in `SSL_CERT_FILE`";
        return Err(message.into());
    }
    // An application that has chosen its cryptography keeps its choice.
    let provider = match CryptoProvider::get_default() {
        Some(chosen) => chosen.clone(),
        None => Arc::new(tokio_rustls::rustls::crypto::ring::default_provider()),
    };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use http::Request;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
        net::TcpListener,
    };
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{
            ServerConfig,
            pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        },
    };

    use super::*;
    use crate::client::http::connect::{Body, ExchangeKind, Limits, Proxy, address::Address, connector};

    /// A certificate for `localhost` that signs itself, and its key: good for these tests and for nothing else.
    const LOCALHOST: &[u8] = include_bytes!("../../../../tests/data/localhost.pem");

    fn trusting(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Tls {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates);
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
        Tls(Arc::new(OnceCell::new_with(Some(TlsConnector::from(Arc::new(config))))))
    }

    fn certificate() -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(LOCALHOST).unwrap()
    }

    /// A server that answers one request per connection, in as few words as there are. Returns its port.
    async fn listens() -> u16 {
        let key = PrivateKeyDer::from_pem_slice(LOCALHOST).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth().with_single_cert(vec![certificate()], key);
        let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(socket).await else { continue };
                let read = stream.read(&mut [0; 4096]).await.unwrap();
                assert!(read > 0);
                stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await.unwrap();
                let _ = stream.shutdown().await;
            }
        });
        port
    }

    async fn fetch(tls: Tls, proxy: Proxy, port: u16) -> Result<u16, String> {
        let pool = connector::pool(&Limits::default(), Arc::new(proxy.matcher()), Some(Arc::new(tls)), None);
        let to = Address::parse(&format!("https://localhost:{port}/mcp")).unwrap();
        match pool.fetch(&to, ExchangeKind::Short, || Request::post("/").body(Body::default()).unwrap()).await
        {
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) => Err(crate::client::http::fetch::cause(&*error)),
        }
    }

    #[tokio::test]
    async fn a_server_whose_certificate_is_trusted_is_spoken_to() {
        let port = listens().await;
        assert_eq!(fetch(trusting([certificate()]), Proxy::none(), port).await, Ok(204));
        let error = fetch(trusting([]), Proxy::none(), port).await.unwrap_err();
        assert!(error.contains("invalid peer certificate"), "{error}");
    }

    #[tokio::test]
    async fn a_proxy_gets_a_tunnel_to_carry() {
        let port = listens().await;
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user:pass@{}", proxy.local_addr().unwrap());
        let carrying = tokio::spawn(async move {
            let (mut from, _) = proxy.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = from.read(&mut head).await.unwrap();
            let mut to = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            from.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            match copy_bidirectional(&mut from, &mut to).await {
                Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
                _ => String::from_utf8(head[..read].to_vec()).unwrap(),
            }
        });
        assert_eq!(fetch(trusting([certificate()]), Proxy::all(url), port).await, Ok(204));
        let head = carrying.await.unwrap();
        assert!(head.starts_with(&format!("CONNECT localhost:{port} HTTP/1.1\r\n")), "{head}");
        assert!(head.to_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnz"), "{head}");
    }

    #[test]
    fn the_system_trusts_somebody_or_it_is_said() {
        match config() {
            Ok(_) => {}
            Err(error) => assert!(error.to_string().contains("SSL_CERT_FILE"), "{error}"),
        }
    }
}

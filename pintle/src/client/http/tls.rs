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

/// What encrypts. The certificates are read with the first connection.
#[derive(Default)]
pub(super) struct Tls(Arc<OnceCell<TlsConnector>>);

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
        let said = "the system has no certificates to trust: install them (often the package `ca-certificates`), or \
                    name a file of them in `SSL_CERT_FILE`";
        return Err(said.into());
    }
    // An application that has chosen its cryptography keeps its choice.
    let provider = match CryptoProvider::get_default() {
        Some(chosen) => chosen.clone(),
        None => Arc::new(tokio_rustls::rustls::crypto::ring::default_provider()),
    };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

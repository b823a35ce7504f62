use std::{
    fmt,
    future::Future,
    io::{self, Write},
    pin::Pin,
    sync::Arc,
};

use pintle::{Error, Result};

use super::{Consent, Visit};

type Ask = dyn Fn(String) -> Pin<Box<dyn Future<Output = Result<String>> + Send>> + Send + Sync;

/// Shows the address of the login page and has the user paste the redirect, for machines without a browser.
///
/// The browser ends at an address where nothing listens; its address bar shows the address to paste.
///
/// ```
/// use pintle_oauth::client::{OAuth, Paste};
///
/// let oauth = OAuth::login("My app", Paste::new("http://localhost/callback", |url| async move {
///     println!("Go to {url} and paste where that leads:");
///     let mut line = String::new();
///     std::io::stdin().read_line(&mut line)?;
///     Ok(line)
/// }));
/// ```
#[derive(Clone)]
pub struct Paste {
    redirect_uri: String,
    ask: Arc<Ask>,
}

impl Paste {
    /// Has users redirected to `redirect_uri`. `ask` is called with the address of the login page and returns the redirect.
    pub fn new<F, A>(redirect_uri: impl Into<String>, ask: A) -> Self
    where
        A: Fn(String) -> F + Send + Sync + 'static,
        F: Future<Output = Result<String>> + Send + 'static,
    {
        Self { redirect_uri: redirect_uri.into(), ask: Arc::new(move |url| Box::pin(ask(url))) }
    }

    /// Asks on the terminal, without writing to standard output, which may carry messages.
    pub fn terminal() -> Self {
        Self::new("http://localhost/callback", |url| async move {
            let read = tokio::task::spawn_blocking(move || -> io::Result<String> {
                let mut screen = io::stderr();
                writeln!(screen, "To log in, open\n\n  {url}\n\nand paste the address that it ends at:")?;
                let mut line = String::new();
                io::stdin().read_line(&mut line)?;
                Ok(line)
            });
            let line =
                read.await.map_err(|_| Error::Io(io::Error::other("the runtime is shutting down")))??;
            if line.trim().is_empty() {
                return Err(Error::Refused("no address was pasted; log in again".into()));
            }
            Ok(line)
        })
    }
}

impl Consent for Paste {
    type Visit = Self;

    async fn begin(&self, _before: Option<&str>) -> Result<Self> {
        Ok(self.clone())
    }
}

impl Visit for Paste {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    async fn ask(self, url: &str) -> Result<String> {
        (self.ask)(url.to_owned()).await
    }
}

impl fmt::Debug for Paste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paste").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_user_is_shown_the_login_page_and_pastes_the_redirect() {
        let paste = Paste::new("http://localhost/callback", |url| async move { Ok(format!("from {url}")) });
        let visit = paste.begin(None).await.unwrap();
        assert_eq!(visit.redirect_uri(), "http://localhost/callback");
        assert_eq!(visit.ask("https://as/authorize").await.unwrap(), "from https://as/authorize");
    }
}

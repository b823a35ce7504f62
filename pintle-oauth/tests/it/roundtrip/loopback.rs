//! Over sockets, with all that a program has by default.

use bytes::Bytes;
use http::{Request, header::LOCATION};
use pintle::client::http::{Proxy, Requests};
use pintle_oauth::client::{Loopback, Network, OAuth};

use crate::support::notes::{ERAS, Notes};

#[tokio::test]
async fn a_browser_is_opened_and_comes_back() {
    for era in ERAS {
        let notes = Notes::listening().await;
        let browser = Loopback::new(|url| {
            let url = url.to_owned();
            tokio::spawn(async move {
                let requests = Requests::new().proxy(Proxy::none());
                let get = |url: &str| Request::get(url).body(Bytes::new()).unwrap();
                let page = requests.send(get(&url)).await.unwrap();
                let back = page.headers()[LOCATION].to_str().unwrap();
                assert_eq!(requests.send(get(back)).await.unwrap().status(), 200);
            });
            Ok(())
        });
        let oauth = OAuth::login("App", browser).web(Network::with_proxy(Proxy::none()));
        let server = notes.connect_as(&oauth, era).await.unwrap();
        assert_eq!(server.call_tool("read", ()).await.unwrap().text(), "read for alice");
    }
}

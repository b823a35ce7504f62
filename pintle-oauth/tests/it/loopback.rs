//! Over sockets, with all that a program has by default.

use bytes::Bytes;
use http::{Request, header::LOCATION};
use pintle::{
    Client,
    client::http::{Http, Proxy, Requests},
};
use pintle_oauth::client::{Loopback, Network, OAuth};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[tokio::test]
async fn a_browser_is_opened_and_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let served = origin.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, served.clone()));
        }
    });
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
    let oauth = OAuth::login("App", browser).web(Network::through(Proxy::none()));
    let http = Http::new(format!("{origin}/mcp")).unwrap().proxy(Proxy::none()).auth(oauth);
    let server = Client::new("test", "0").connect(http).await.unwrap();
    assert_eq!(server.revision().to_string(), "2026-07-28");
}

/// A server and its authorization server, as short as they can be.
async fn serve(mut socket: TcpStream, origin: String) {
    let mut request = String::new();
    let mut piece = [0; 8192];
    while !request.contains("\r\n\r\n") {
        let Ok(read @ 1..) = socket.read(&mut piece).await else { return };
        request.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    let target = request.split(' ').nth(1).unwrap();
    let (status, header, body) = match target.split('?').next().unwrap() {
        "/mcp" if request.contains("authorization: Bearer t0ken") => (
            200,
            String::new(),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "capabilities": {},
                "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "public"}}),
        ),
        "/mcp" => (401, "www-authenticate: Bearer".to_owned(), json!(null)),
        "/.well-known/oauth-protected-resource/mcp" => (
            200,
            String::new(),
            json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]}),
        ),
        "/.well-known/oauth-authorization-server" => (
            200,
            String::new(),
            json!({"issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": ["S256"]}),
        ),
        "/register" => (201, String::new(), json!({"client_id": "c"})),
        "/authorize" => {
            let asked = |name: &str| {
                let at = target.find(&format!("{name}=")).unwrap() + name.len() + 1;
                target[at..].split('&').next().unwrap().replace("%3A", ":").replace("%2F", "/")
            };
            let back = format!("location: {}?code=c&state={}", asked("redirect_uri"), asked("state"));
            (302, back, json!(null))
        }
        "/token" => (200, String::new(), json!({"access_token": "t0ken", "token_type": "bearer"})),
        other => panic!("{other}"),
    };
    let body = body.to_string();
    let header = if header.is_empty() { header } else { format!("{header}\r\n") };
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n{header}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(answer.as_bytes()).await.unwrap();
}

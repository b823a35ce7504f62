//! Support for tests: an authorization server in the process of the test, and users who log in without interaction.
//!
//! A protected server and a client that logs in, in memory:
//!
//! ```
//! # #[cfg(feature = "server")] {
//! use pintle::{Client, Server, client::http::Http, proto::http::Guard, server::tool};
//! use pintle_oauth::client::OAuth;
//! use pintle_oauth::server::{Jwt, Principal, Protected};
//! use pintle_oauth::testing::{AuthorizationServer, Hosts, User};
//! use tower_layer::Layer;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> pintle::Result<()> {
//!     let login = AuthorizationServer::new("https://login.test");
//!     login.subject("alice");
//!     let hosts = Hosts::new().host(login.issuer(), login.clone());
//!
//!     // Your server, with another network.
//!     let whoami = tool("whoami", |who: Principal| async move { who.subject().to_owned() });
//!     let http = Server::new("notes", "1.0.0").tool(whoami).http()?.guard(Guard::hosts(["notes.test"]));
//!     let tokens = Jwt::new(login.issuer())?.web(hosts.clone());
//!     let protected = Protected::new("https://notes.test/mcp", tokens)?;
//!     let hosts = hosts.host("https://notes.test", protected.layer(http));
//!
//!     // Your client, with a user who needs no browser.
//!     let oauth = OAuth::login("My app", User::on(hosts.clone())).web(hosts.clone());
//!     let http = Http::new("https://notes.test/mcp")?.client(hosts).auth(oauth);
//!     let server = Client::new("my-app", "1.0.0").connect(http).await?;
//!     assert_eq!(server.call_tool("whoami", ()).await?.text(), "alice");
//!
//!     assert_eq!(login.log(), [
//!         "GET /.well-known/oauth-authorization-server: 200",
//!         "POST /register: 201",
//!         "GET /authorize: 302",
//!         "POST /token (authorization_code): 200",
//!         // The server has looked for the keys.
//!         "GET /.well-known/oauth-authorization-server: 200",
//!         "GET /jwks: 200",
//!     ]);
//!     Ok(())
//! }
//! # main().unwrap();
//! # }
//! ```
//!
//! An [`AuthorizationServer`] implements all that clients and servers need, logs its requests, and misbehaves on demand: with
//! a [`Fault`], a [`Hold`] or another clock. [`Hosts`] is the network in memory; [`AuthorizationServer::listen`] uses real
//! sockets. A [`User`] logs in.
//!
//! Misuse panics, which fails the test. None of it is secure enough for anything but tests.

mod answer;
mod asked;
mod authorization_server;
mod claims;
mod clients;
mod documents;
mod endpoint;
mod fault;
mod granting;
mod hold;
mod hosts;
mod login;
mod proof;
mod received;
mod state;
mod tokens;
mod user;

pub use asked::Asked;
pub use authorization_server::AuthorizationServer;
pub use claims::Claims;
pub use endpoint::Endpoint;
pub use fault::Fault;
pub use hold::Hold;
pub use hosts::{HostBody, Hosts};
pub use user::User;

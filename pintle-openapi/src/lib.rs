//! Tools that call an HTTP API, from its OpenAPI document, for [`pintle`].
//!
//! [`OpenApi`] reads a document of OpenAPI 3.0 or 3.1, in JSON or YAML. Each of its operations becomes a tool of [`ApiTools`], which is a
//! [`Provider`](pintle::server::Provider): mount it in a server, alone or beside tools of your own.
//!
//! ```
//! use pintle::Server;
//! use pintle_openapi::OpenApi;
//!
//! let document = "
//! openapi: 3.1.0
//! info: { title: Pets, version: '1' }
//! servers: [{ url: https://pets.example.com/v1 }]
//! paths:
//!   /pets/{id}:
//!     get:
//!       operationId: getPet
//!       summary: Returns a pet.
//!       parameters:
//!         - { name: id, in: path, required: true, schema: { type: integer } }
//! ";
//! let pets = OpenApi::from_text(document)?.build()?;
//! let tool = pets.tools().next().unwrap();
//! assert_eq!(tool.name, "getPet");
//! assert_eq!(tool.input_schema["required"][0], "id");
//! Server::new("pets", "1.0.0").provider(pets).check()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | adds | by default |
//! |---|---|---|
//! | `tls` | `https`, which nearly every API wants | yes |
//!
//! The page `docs/openapi.md` of the repository is the guide.

mod answer;
mod arguments;
mod builder;
mod call;
mod client;
mod document;
mod error;
#[cfg(doctest)]
mod guide;
mod names;
mod oauth_client;
mod openapi;
mod operation;
mod origin;
mod output;
mod pages;
mod request;
mod resources;
mod rules;
mod schema;
mod settings;
mod tool;
mod tools;
pub mod url;
mod visible;

pub use document::DocumentFiles;
pub use error::OpenApiError;
pub use oauth_client::OAuthClient;
pub use openapi::OpenApi;
pub use origin::OriginClient;
pub use request::{PlannedRequest, Redaction};
pub use tools::{ApiTools, LeftOut};

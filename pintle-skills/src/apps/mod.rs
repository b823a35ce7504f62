//! MCP Apps: user interfaces that a server offers as HTML, and hosts show beside a conversation.
//!
//! An [`App`] is a resource with a `ui://` URI, and the tools that it is shown for. [`Apps`] adds apps to a server, and refuses to start
//! with what hosts ignore without a message: a content security policy at a tool, another media type, a tool that names no such
//! resource. [`client_renders`] returns whether the client of a tool shows apps, and [`RenderApps`] declares that for a host.
//!
//! This is the extension `io.modelcontextprotocol/ui`. It exists in all revisions.
//!
//! ```
//! # #[cfg(feature = "server")] {
//! use pintle::{Server, server::{Cx, tool}};
//! use pintle_skills::apps::{self, App, Apps};
//!
//! async fn show_clock(cx: Cx) -> String {
//!     match apps::client_renders(&cx) {
//!         true => "The clock is shown.".to_owned(),
//!         false => "It is noon.".to_owned(),
//!     }
//! }
//!
//! let clock = App::new("ui://clock/face", "clock", "<!doctype html><p>noon</p>")
//!     .connect_to("https://time.example.com")
//!     .tool(tool("show_clock", show_clock).description("Shows a clock."));
//! let server = Server::new("clock", "1.0.0").with(Apps::new().app(clock));
//! server.check().unwrap();
//! # }
//! ```

#[cfg(feature = "server")]
mod app;
#[cfg(feature = "server")]
mod check;
#[cfg(feature = "server")]
mod extension;
#[cfg(feature = "client")]
mod host;

#[cfg(feature = "server")]
pub use app::{App, AppPermission};
#[cfg(feature = "server")]
pub use extension::{Apps, client_renders};
#[cfg(feature = "client")]
pub use host::{RenderApps, app_uri, is_for_model};

/// The name of the extension of apps.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The media type of the HTML of an app. Hosts do not render a resource of any other.
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The member of the settings of clients that lists what they render.
const MIME_TYPES: &str = "mimeTypes";
/// The member of `_meta` of tools, resources and their contents.
const META: &str = "ui";
/// The member of `_meta` of tools that older hosts read.
const FLAT_META: &str = "ui/resourceUri";
/// The member of a tool's metadata that names the resource.
const RESOURCE_URI: &str = "resourceUri";
/// The member of a tool's metadata that names who may call it.
const VISIBILITY: &str = "visibility";

//! Listening for HTTP clients, and who may connect.

mod access;
mod args;
mod bearer_service;
mod body;
mod listening;
mod open_files;
mod routed_service;
mod routes;
mod service;

use access::Access;
pub(crate) use args::ListenArgs;
use bearer_service::BearerService;
pub(crate) use body::ServedBody;
pub(crate) use listening::{ENDPOINT, Listening};
pub(crate) use open_files::raise_open_files;
pub(crate) use routed_service::{Beside, BrowserPage, Page, PageAccess, PageReader, RequestMark};
use routed_service::{PendingPage, RoutedService};
pub(crate) use routes::{PathProtection, Routes};
pub(crate) use service::{HttpService, refused};

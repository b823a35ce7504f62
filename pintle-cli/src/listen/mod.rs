//! Listening for HTTP clients, and who may connect.

mod access;
mod args;
mod bearer_service;
mod body;
mod listening;
mod routed_service;
mod service;

use access::Access;
pub(crate) use args::ListenArgs;
use bearer_service::BearerService;
pub(crate) use body::ServedBody;
pub(crate) use listening::{ENDPOINT, Listening};
pub(crate) use routed_service::Page;
use routed_service::RoutedService;
pub(crate) use service::{HttpService, refused};

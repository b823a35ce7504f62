//! Addresses: URI templates that match, and `file:` URIs.
//!
//! A [`Template`] is an RFC 6570 template that a server can match a URI against. What it finds are [`Vars`], which
//! decode into a type of your own. [`expand`] goes the other way, for any template that a server offers.
//! [`root_from_path`] and [`path_from_uri`] go between paths and `file:` URIs.

mod decode;
mod error;
mod expand;
mod file;
mod parse;
mod percent;
mod program;
mod template;
mod traversal;
mod vars;

pub use decode::DecodeError;
pub use error::TemplateError;
pub use expand::{Value, Values, expand};
pub use file::{FileUriError, path_from_uri, root_from_path, uri_from_path};
#[cfg(feature = "server")]
pub(crate) use percent::{decode_bytes, encode_segment, normalise};
pub use template::{Rank, Template};
pub use vars::Vars;

#![doc = include_str!("../README.md")]

mod canonical;
mod decode;
mod error;
mod expand;
mod file;
mod index;
mod near;
mod parse;
mod percent;
mod program;
mod template;
mod traversal;
mod vars;

pub use canonical::{Uri, UriFault, UriLimits, UriPattern, UriTooLong};
pub use decode::DecodeError;
pub use error::TemplateError;
pub use expand::{Value, Values, expand};
pub use file::{FileUriError, path_from_uri, uri_from_path};
pub use index::{TemplateIndex, TemplateMatch};
#[doc(hidden)]
pub use near::nearest;
pub use percent::{decode_bytes, encode_segment, normalise};
pub use template::{Template, TemplateRank};
pub use vars::Vars;

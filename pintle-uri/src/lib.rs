#![doc = include_str!("../README.md")]

mod decode;
mod error;
mod expand;
mod file;
mod near;
mod parse;
mod percent;
mod program;
mod template;
mod traversal;
mod vars;

pub use decode::DecodeError;
pub use error::TemplateError;
pub use expand::{Value, Values, expand};
pub use file::{FileUriError, path_from_uri, uri_from_path};
#[doc(hidden)]
pub use near::nearest;
pub use percent::{decode_bytes, encode_segment, normalise};
pub use template::Template;
pub use vars::Vars;

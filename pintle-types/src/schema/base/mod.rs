//! Params and results that several methods share.

mod empty;
mod input;
mod list;
mod redacted;

pub use empty::{CacheScope, EmptyParams, EmptyResult, ResultType};
pub use input::{InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use list::ListParams;
pub(super) use list::list_result;
pub(super) use redacted::{Redacted, redacted_debug};

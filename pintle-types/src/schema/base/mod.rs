//! Params and results that several methods share.

mod empty;
mod input;

pub use empty::{CacheScope, EmptyParams, EmptyResult, ListParams, ResultType};
pub use input::{InputRequest, InputRequests, InputRequiredResult, InputResponses};

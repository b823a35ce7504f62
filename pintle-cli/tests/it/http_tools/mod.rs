//! Tools that send HTTP requests.

mod api_tokens;
mod apis;
mod requests;

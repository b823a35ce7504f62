//! A gateway as whoever operates it sees it.

mod ready;
mod restart;
mod service_log;

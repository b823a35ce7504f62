//! A gateway as whoever operates it sees it.

mod restart;
mod service_log;

//! A gateway as whoever operates it sees it.

mod restart;

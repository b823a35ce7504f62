//! Redis servers for the tests: real ones, scripted ones, and connections that are cut.

pub(crate) mod cut_link;
pub(crate) mod redis_folder;
pub(crate) mod redis_server;
pub(crate) mod scripted_redis;

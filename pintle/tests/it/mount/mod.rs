//! A server in a server.

//! Skills: what a server offers, and what a client accepts.

mod folder;
mod reader;

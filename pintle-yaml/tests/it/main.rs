//! Integration tests of `pintle-yaml`.

mod properties;

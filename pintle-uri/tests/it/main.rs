//! Integration tests of `pintle-uri`.

mod properties;

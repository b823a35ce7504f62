//! A confined directory as resources.

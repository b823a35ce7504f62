//! What the compiler says to those who get it wrong: it should say what to write.

/// The texts are those of one compiler. `TRYBUILD=overwrite cargo test macros_wrong` writes them anew.
#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/wrong/**/*.rs");
}

/// A supertrait of traits that only this crate implements.
#[expect(unnameable_types, reason = "nobody else can implement what they cannot name")]
pub trait Sealed {}

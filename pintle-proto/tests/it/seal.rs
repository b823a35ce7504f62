//! A cipher for tests: it hides nothing and notices every change.

use pintle_proto::inputs::{KeyId, Seal, SealError};

#[derive(Debug)]
pub(crate) struct Checksum;

const KEY: KeyId = KeyId(*b"test key");

impl Seal for Checksum {
    fn key(&self) -> KeyId {
        KEY
    }

    fn seal(&self, key: KeyId, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
        Ok([plain, &sum(key, bound, plain)].concat())
    }

    fn open(&self, key: KeyId, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (plain, tag) = sealed.split_at_checked(sealed.len().checked_sub(16)?)?;
        (key == KEY && tag == sum(key, bound, plain)).then(|| plain.to_vec())
    }
}

fn sum(key: KeyId, bound: &[u8], plain: &[u8]) -> [u8; 16] {
    let parts = key.0.iter().chain(bound).chain(&[0]).chain(plain);
    let sum = parts.fold(0xcbf2_9ce4_8422_2325_u128, |sum, byte| {
        (sum ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    });
    sum.to_be_bytes()
}

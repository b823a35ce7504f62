use std::hash::{BuildHasherDefault, Hasher};

/// A fast hasher for maps keyed by the client's own request ids: `HashMap<RequestId, T, OwnIds>`.
///
/// The ids are consecutive and not chosen by a peer, so no protection against hash flooding is needed (see
/// `bench/LEDGER.md`).
pub type OwnIds = BuildHasherDefault<OwnIdHasher>;

/// The hasher of [`OwnIds`].
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnIdHasher(u64);

impl Hasher for OwnIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        // An odd constant without a pattern: consecutive ids differ in the low bits, which select a bucket, and in the
        // high ones.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{HashMap, HashSet},
        hash::BuildHasher as _,
    };

    use pintle_types::RequestId;

    use super::*;

    #[test]
    fn neighbours_do_not_share_a_place() {
        let hash = |id: i64| OwnIds::default().hash_one(RequestId::from(id));
        let places: HashSet<_> = (0..1024).map(|id| hash(id) % 1024).collect();
        let marks: HashSet<_> = (0..1024).map(|id| hash(id) >> 57).collect();
        assert!(places.len() > 600 && marks.len() > 100, "{} and {}", places.len(), marks.len());
    }

    #[test]
    fn every_id_is_found() {
        let ids = || (-10..1000).map(RequestId::from).chain([RequestId::from("7"), RequestId::from("")]);
        let table: HashMap<_, _, OwnIds> = ids().enumerate().map(|(n, id)| (id, n)).collect();
        assert!(ids().enumerate().all(|(n, id)| table[&id] == n));
    }
}

use std::sync::Arc;

use super::{Session, channel::Channel};

/// The streams of a session that cannot be resumed, because an event of theirs could not be logged.
#[derive(Default)]
pub(super) struct LostStreams {
    numbers: Vec<u64>,
    /// Whether there are so many that all streams are taken to be lost.
    all: bool,
}

/// The limit of lost streams that are remembered individually.
const APART: usize = 64;

impl LostStreams {
    pub(in crate::server::http) fn is_empty(&self) -> bool {
        self.numbers.is_empty() && !self.all
    }

    fn add(&mut self, number: u64) {
        if self.numbers.len() >= APART {
            *self = Self { numbers: Vec::new(), all: true };
        }
        if !self.contains(number) {
            self.numbers.push(number);
        }
    }

    fn contains(&self, number: u64) -> bool {
        self.all || self.numbers.contains(&number)
    }
}

impl Session {
    /// Makes a stream resumable, until it is released.
    pub(in crate::server::http) fn keep(&self, channel: &Arc<Channel>) {
        self.lock().busy().channels.insert(channel.number, channel.clone());
    }

    pub(in crate::server::http) fn channel(&self, number: u64) -> Option<Arc<Channel>> {
        self.lock().busy.as_ref()?.channels.get(&number).cloned()
    }

    pub(in crate::server::http) fn release(&self, number: u64) {
        let mut core = self.lock();
        let channel = core.busy.as_mut().and_then(|busy| busy.channels.remove(&number));
        core.rest();
        drop(core);
        drop(channel);
    }

    /// Makes a stream not resumable.
    pub(in crate::server::http) fn lose_stream(&self, number: u64) {
        let mut core = self.lock();
        if !core.ended {
            core.busy().lost.add(number);
        }
    }

    pub(in crate::server::http) fn has_lost(&self, number: u64) -> bool {
        self.lock().busy.as_ref().is_some_and(|busy| busy.lost.contains(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_remembered_and_then_all_are_lost() {
        let mut lost = LostStreams::default();
        for number in [1, 1, 2] {
            lost.add(number);
        }
        assert!(lost.contains(1) && lost.contains(2) && !lost.contains(3));
        (0..1000).for_each(|number| lost.add(number));
        assert!(lost.numbers.len() <= APART);
        assert!(lost.contains(5000), "nobody knows any more");
    }
}

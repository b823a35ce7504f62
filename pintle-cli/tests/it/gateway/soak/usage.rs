//! The resources of a process.

use std::{fs, path::Path, time::Duration};

use tokio::time::sleep;

/// The number of equal samples in a row after which a process is idle.
const EQUAL_SAMPLES: usize = 8;
/// The limit of samples until then.
const MAX_SAMPLES: usize = 1_200;

/// The resources that a process has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// The memory that it has, in kilobytes.
    pub(super) memory: usize,
    pub(super) descriptors: usize,
    /// The processes that any of its threads has started, and that have not ended.
    pub(super) programs: usize,
}

impl Usage {
    fn of(process: u32) -> Self {
        let folder = format!("/proc/{process}");
        let status = fs::read_to_string(format!("{folder}/status")).unwrap();
        let resident = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let memory = resident.split_whitespace().nth(1).unwrap().parse().unwrap();
        let descriptors = fs::read_dir(format!("{folder}/fd")).unwrap().count();
        let threads = fs::read_dir(format!("{folder}/task")).unwrap().flatten();
        let children = |thread: &Path| fs::read_to_string(thread.join("children")).unwrap_or_default();
        let programs = threads.map(|thread| children(&thread.path()).split_whitespace().count()).sum();
        Self { memory, descriptors, programs }
    }

    /// Returns the most of each resource of some samples.
    pub(super) fn most(samples: &[Self]) -> Self {
        samples.iter().fold(Self::default(), |most, sample| Self {
            memory: most.memory.max(sample.memory),
            descriptors: most.descriptors.max(sample.descriptors),
            programs: most.programs.max(sample.programs),
        })
    }

    /// Returns whether each resource is at most that of another sample, and a margin.
    pub(super) fn is_within(self, other: Self, margin: Self) -> bool {
        self.memory <= other.memory + margin.memory
            && self.descriptors <= other.descriptors + margin.descriptors
            && self.programs <= other.programs + margin.programs
    }

    /// Waits until a process has given back what its clients needed, and returns what it keeps.
    pub(super) async fn idle(process: u32) -> Self {
        let (mut before, mut equal) = (Self::of(process), 0);
        for _ in 0..MAX_SAMPLES {
            sleep(Duration::from_millis(100)).await;
            let now = Self::of(process);
            let is_equal = now.descriptors == before.descriptors && now.programs == before.programs;
            (before, equal) = (now, if is_equal { equal + 1 } else { 0 });
            if equal == EQUAL_SAMPLES {
                return now;
            }
        }
        panic!("it does not come to rest: {before:?}");
    }
}

//! A core for each end.

/// Two different cores, if this process may use as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores(pub(crate) [usize; 2]);

#[cfg(target_os = "linux")]
impl Cores {
    /// The first two cores that the process may use.
    pub(crate) fn find() -> Option<Self> {
        let allowed = rustix::thread::sched_getaffinity(None).ok()?;
        let mut cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        Some(Cores([cores.next()?, cores.next()?]))
    }

    /// Keeps the calling thread on the core of one side, and says whether that worked.
    pub(crate) fn pin(self, side: usize) -> bool {
        let mut set = rustix::thread::CpuSet::new();
        set.set(self.0[side]);
        rustix::thread::sched_setaffinity(None, &set).is_ok()
    }
}

/// Elsewhere threads go where the system likes: macOS has no call for it on Apple silicon.
#[cfg(not(target_os = "linux"))]
impl Cores {
    pub(crate) fn find() -> Option<Self> {
        None
    }

    pub(crate) fn pin(self, _: usize) -> bool {
        false
    }
}

//! Running a model in all its schedules.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Runs a model in every schedule with at most so many preemptions, and prints how many those were.
pub(crate) fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{} schedules", count.load(Ordering::Relaxed));
}

/// Explores a model with an actor that is killed after its k-th access (see [`live`](super::sync::mortal::live)), for every k
/// up to the one that it survives in all schedules. The model says so when it was killed.
pub(crate) fn explore_deaths(preemptions: usize, model: impl Fn(usize, &AtomicBool) + Sync + Send + Copy + 'static) {
    for steps in 0..200 {
        let died = Arc::new(AtomicBool::new(false));
        let seen = died.clone();
        explore(Some(preemptions), move || model(steps, &seen));
        if !died.load(Ordering::Relaxed) {
            println!("{steps} steps");
            assert!(steps > 1, "it never died");
            return;
        }
    }
    panic!("the actor's life has no end");
}

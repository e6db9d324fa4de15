//! Ends that wait for one another without a processor each.

use crate::duet::safe::SafeEnd;
use crate::duet::{End, Hosts, Options, Stage, Stop};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Round trips between two looks at the clock.
const TURNS: u32 = 50;

/// How long to wait before looking whether it is all over.
const TURN: Duration = Duration::from_millis(20);

/// Both ends of a ping-pong on one core: each has to give it away for the other to go on.
pub(crate) fn one_core(stage: &Stage, options: &Options) -> Result<(), Stop> {
    println!("Both ends bound to one core, 64 B: us one way, over all");
    let ends = SafeEnd::connect(&Hosts::new()?, 64)?;
    let (trips, time) = play(ends, options, &|| stage.pin(0))?;
    println!("{:.2}", time.as_secs_f64() * 1e6 / (2 * trips) as f64);
    Ok(())
}

/// More threads that wait busily than there are cores; and threads that wait for somebody who never comes.
pub(crate) fn crowd(_: &Stage, options: &Options) -> Result<(), Stop> {
    println!(
        "Pairs of threads that play ping-pong at once, 64 B, beside threads that wait in vain: round trips a second"
    );
    println!("pairs | in vain |  all together | the slowest pair");
    for (pairs, waiters) in [(1, 0), (2, 0), (4, 0), (8, 0), (1, 1), (1, 4), (4, 4)] {
        let connect = |_| SafeEnd::connect(&Hosts::new()?, 64);
        let ends = (0..pairs).map(connect).collect::<Result<Vec<_>, Stop>>()?;
        let silent = (0..waiters).map(connect).collect::<Result<Vec<_>, Stop>>()?;
        let over = AtomicBool::new(false);
        let rates = thread::scope(|scope| {
            let wait = |[mut here, _there]: [SafeEnd; 2]| {
                while !over.load(Ordering::Relaxed) {
                    here.receive_within(TURN)?;
                }
                Ok::<_, Stop>(())
            };
            let waiting: Vec<_> = silent.into_iter().map(|ends| scope.spawn(move || wait(ends))).collect();
            let playing: Vec<_> =
                ends.into_iter().map(|ends| scope.spawn(move || play(ends, options, &|| true))).collect();
            let rates = playing.into_iter().map(|player| {
                let (trips, time) = joined(player)?;
                Ok(trips as f64 / time.as_secs_f64())
            });
            let rates = rates.collect::<Result<Vec<f64>, Stop>>();
            over.store(true, Ordering::Relaxed);
            waiting.into_iter().try_for_each(joined)?;
            rates
        })?;
        let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{pairs:>5} | {waiters:>7} | {:>13.0} | {slowest:>16.0}", rates.iter().sum::<f64>());
    }
    Ok(())
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T, Stop>>) -> Result<T, Stop> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Plays for some time, on two threads that `place` puts somewhere. Returns how many round trips there were, and how long
/// they took.
fn play(
    [mut client, mut server]: [SafeEnd; 2],
    options: &Options,
    place: &(dyn Fn() -> bool + Sync),
) -> Result<(u64, Duration), Stop> {
    let over = &AtomicBool::new(false);
    let least = if options.quick { Duration::ZERO } else { options.time.max(Duration::from_millis(600)) };
    thread::scope(|scope| {
        let answering = scope.spawn(move || {
            place();
            while !over.load(Ordering::Relaxed) {
                if server.receive_within(TURN)? {
                    server.send()?;
                }
            }
            Ok(())
        });
        let calling = scope.spawn(move || {
            place();
            let (mut trips, begin) = (0, Instant::now());
            let outcome = loop {
                let turns = (0..TURNS).try_for_each(|_| {
                    client.send()?;
                    client.receive()
                });
                trips += u64::from(TURNS);
                if turns.is_err() || begin.elapsed() >= least {
                    break turns.map(|()| (trips, begin.elapsed()));
                }
            };
            over.store(true, Ordering::Relaxed);
            outcome
        });
        let played = joined(calling);
        joined(answering)?;
        played
    })
}

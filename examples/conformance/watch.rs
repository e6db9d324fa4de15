//! Looks after the time, and after the signals that ask the program to end.

use crate::signals;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a step takes if its calls return.
const LONG: Duration = Duration::from_secs(90);

#[derive(Clone)]
pub(crate) struct Watch {
    interrupted: Arc<AtomicBool>,
    step: Arc<Mutex<Option<(&'static str, Instant)>>>,
}

impl Watch {
    /// From now on these signals end no program, but are noted.
    pub(crate) fn start() -> io::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        signals::each(|signal| signal_hook::flag::register(signal, interrupted.clone()))?;
        let watch = Watch { interrupted, step: Arc::default() };
        let other = watch.clone();
        thread::Builder::new().name("watch".to_owned()).spawn(move || other.look())?;
        Ok(watch)
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, step: &'static str) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = Some((step, Instant::now()));
    }

    pub(crate) fn end(&self) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// For the life of the program. Says things once; if standard error is gone, nobody.
    fn look(&self) {
        let (mut told, mut late) = (false, None);
        loop {
            thread::sleep(Duration::from_millis(50));
            let step = *self.step.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((name, since)) = step else { continue };
            if self.interrupted() && !told {
                told = true;
                let _ = writeln!(
                    io::stderr(),
                    "conformance: interrupted; it ends `{name}` first, and destroys what it made"
                );
            }
            if since.elapsed() > LONG && late != Some(since) {
                late = Some(since);
                let _ = writeln!(
                    io::stderr(),
                    "conformance: `{name}` takes longer than {LONG:?}: a call into the library does not return. The report \
                     is written up to it. Do not kill this program at once: pull the cable and plug it again, and wait"
                );
            }
        }
    }
}

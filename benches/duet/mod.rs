//! Two threads on two cores that play to each other: what the two-ended benchmarks have in common.
//!
//! How figures are taken, and why so:
//!
//! * What it costs to hand a cache line from one core to the other changes on a virtual machine from one second to the
//!   next, by a factor of ten, as its processors are moved about. So time is cut into short *batches*, each begins with
//!   that hand-over alone ([`Line`], the *floor*), and batches are sorted by it: see [`Place`].
//! * What is compared is interleaved: each batch has each contestant once, on the same two threads, in changing order.
//! * Of the batches of a class, the 10th percentile and the median are told, and the median of the ratio to the floor of
//!   the same batch.
//! * The receiver reads every cache line of a message before it answers. (Whose receiver does not, measures a message that
//!   nobody moved.)
//! * *Warm* is a message that is sent again and again, as perftest does it: it stays in both cores' caches. *Rewritten* is
//!   one that the sender writes anew each time, all of it, within the time that is measured.
//!
//! Floor, clock, cores and statistics are those of the example `pingpong`.

pub(crate) mod bare;
pub(crate) mod cue;
pub(crate) mod ends;
pub(crate) mod options;
pub(crate) mod place;
pub(crate) mod safe;
pub(crate) mod stage;
pub(crate) mod table;

pub(crate) use crate::measure::{Clock, Cores, Line, Patience, Sorted, Stop};
pub(crate) use cue::Cue;
pub(crate) use ends::{End, Hosts};
pub(crate) use options::Options;
pub(crate) use place::Place;
pub(crate) use stage::Stage;

//! The tables.

use crate::duet::{Place, Sorted};
use crate::{alone, stream, trips};

/// A class with fewer batches is not shown: there would be no percentile of it.
const LEAST: usize = 3;

/// The batches of each class that has enough of them. Of those that were interrupted, only if there are no others.
fn classes<T>(batches: &[T], floor: impl Fn(&T) -> f64) -> Vec<(Place, Vec<&T>)> {
    let of = |place| {
        let these: Vec<&T> = batches.iter().filter(|batch| Place::of(floor(batch)) == place).collect();
        (place, these)
    };
    let mut classes: Vec<_> = Place::ALL.map(of).into_iter().filter(|(_, these)| these.len() >= LEAST).collect();
    if classes.len() > 1 {
        classes.retain(|(place, _)| *place != Place::Slow);
    }
    classes
}

fn sorted<T>(batches: &[&T], value: impl Fn(&T) -> f64) -> Sorted {
    Sorted::new(batches.iter().map(|batch| value(batch)).collect())
}

pub(crate) fn alone_heading() {
    println!();
    println!("Both ends on one thread, in nanoseconds a message (two requests, posted and polled):");
    println!("10th percentile and median of the batches, and by how much the safe API takes longer for a request.");
    println!();
    println!("  bytes       n |  table p10   median |   safe p10   median | a request");
}

pub(crate) fn alone(row: &alone::Row, batches: &[alone::Batch]) {
    let all: Vec<_> = batches.iter().collect();
    let [table, safe] = [0, 1].map(|index| sorted(&all, |batch| batch.times[index]));
    let more = sorted(&all, |batch| (batch.times[1] - batch.times[0]) / 2.0).median();
    let [table, safe] = [table, safe].map(|times| format!("{:>10.1} {:>8.1}", times.per_mille(100), times.median()));
    println!("{:>7} {:>7} | {table} | {safe} | {more:>+9.1}", row.size, all.len());
}

pub(crate) fn latency_heading() {
    println!();
    println!("One way between two threads, in nanoseconds: 10th percentile and median of the batches, and the median");
    println!("ratio to the floor of the same batch. \"copy\": a copy into the receiver's memory, and a flag.");
    println!();
    println!(
        "class floor   bytes source          n |   copy p10    median |  table p10    median  ratio |   safe p10    median  \
         ratio | safe-table"
    );
}

pub(crate) fn latency(row: &trips::Row, batches: &[trips::Batch]) {
    let source = if row.rewritten { "rewritten" } else { "warm" };
    for (place, these) in classes(batches, |batch| batch.floor) {
        let floor = sorted(&these, |batch| batch.floor).median();
        let [copy, table, safe] = [0, 1, 2].map(|index| {
            let times = sorted(&these, |batch| batch.times[index]);
            let ratio = sorted(&these, |batch| batch.times[index] / batch.floor).median();
            let ratio = if index == 0 { String::new() } else { format!(" {ratio:>6.2}") };
            format!("{:>10.0} {:>9.0}{ratio}", times.per_mille(100), times.median())
        });
        let more = sorted(&these, |batch| batch.times[2] - batch.times[1]).median();
        println!(
            "{place:<5} {floor:>5.0} {:>7} {source:<9} {:>7} | {copy} | {table} | {safe} | {more:>+10.1}",
            row.size,
            these.len(),
        );
    }
}

pub(crate) fn stream_heading() {
    println!();
    println!(
        "Many messages one way: 10th percentile and median of the batches' times, as rates. The source is warm, and"
    );
    println!("\"read\" says whether the receiver reads what comes. Rates are of messages posted 16 at once.");
    println!("\"memcpy\": one thread, from its cache to its cache.");
    println!();
    println!(
        "class floor   bytes read        n |  table p10   median |   safe p10   median |         safe/table |  memcpy"
    );
}

pub(crate) fn stream(row: &stream::Row, batches: &[stream::Batch]) {
    let rates = row.together > 1;
    let rate = |time: f64| if rates { 1000.0 / time } else { row.size as f64 / time };
    for (place, these) in classes(batches, |batch| batch.floor) {
        let floor = sorted(&these, |batch| batch.floor).median();
        let [table, safe] = [0, 1].map(|index| {
            let times = sorted(&these, |batch| batch.times[index]);
            format!("{:>10.1} {:>8.1}", rate(times.per_mille(100)), rate(times.median()))
        });
        let ratio = sorted(&these, |batch| batch.times[0] / batch.times[1]).median();
        let copy =
            if rates { String::new() } else { format!("{:>7.1}", rate(sorted(&these, |batch| batch.copy).median())) };
        let unit = if rates { "million/s" } else { "GB/s" };
        let read = if row.reads { "yes" } else { "no" };
        println!(
            "{place:<5} {floor:>5.0} {:>7} {read:<4} {:>8} | {table} | {safe} | {unit:<9} {ratio:>8.2} | {copy}",
            row.size,
            these.len(),
        );
    }
}

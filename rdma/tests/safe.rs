//! The safe API over the software device. One file a subject.

mod support;

mod safe {
    mod batches;
    mod budgets;
    mod closing;
    mod connecting;
    mod errors;
    mod linking;
    mod messages;
    mod regions;
    mod threads;
    mod traits;
}

//! P10, P12: there is no way to have a buffer back but its completion, or closing the queue pair.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let _ = queue_pair.cancel(0);
    let _ = queue_pair.take_buffer(0);
}

fn todo<T>() -> T {
    loop {}
}

//! P5: and none can be taken out without `unsafe`.
fn main() {
    let queue_pair: rdma::QueuePair = todo();
    let raw = queue_pair.as_raw();
}

fn todo<T>() -> T {
    loop {}
}

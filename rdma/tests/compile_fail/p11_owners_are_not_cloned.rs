//! P11: what owns a queue, a queue pair or a buffer cannot be cloned.
fn main() {
    let _ = todo::<rdma::QueuePair>().clone();
    let _ = todo::<rdma::CompletionQueue>().clone();
    let _ = todo::<rdma::Buffer>().clone();
    let _ = todo::<rdma::PreparedQueuePair>().clone();
}

fn todo<T>() -> T {
    loop {}
}

//! A34 of the field: a queue pair is not shared between threads without a lock; nor is a completion queue.
fn main() {
    let queue_pair: rdma::QueuePair = todo();
    let queue: rdma::CompletionQueue = todo();
    std::thread::scope(|scope| {
        scope.spawn(|| queue_pair.number());
        scope.spawn(|| queue.capacity());
    });
}

fn todo<T>() -> T {
    loop {}
}

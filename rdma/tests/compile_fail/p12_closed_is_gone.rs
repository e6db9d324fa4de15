//! P12: closing, which returns the buffers, consumes the queue pair.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let unfinished = queue_pair.close();
    let _ = queue_pair.post_recv(todo::<rdma::Buffer>(), 0);
    drop(unfinished);
}

fn todo<T>() -> T {
    loop {}
}

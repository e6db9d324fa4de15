//! C4 of the field: the result of a post is looked at.
#![deny(unused_must_use)]
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    queue_pair.post_recv(todo::<rdma::Buffer>(), 0);
    let mut queue: rdma::CompletionQueue = todo();
    queue.wait(std::time::Duration::ZERO);
}

fn todo<T>() -> T {
    loop {}
}

//! P3, and B12, A27 of the field: not written between post and completion either.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let mut buffer: rdma::Buffer = todo();
    queue_pair.post_send(buffer, .., 0).unwrap();
    buffer[0] = 1;
}

fn todo<T>() -> T {
    loop {}
}

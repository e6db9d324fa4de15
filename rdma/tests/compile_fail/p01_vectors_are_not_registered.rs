//! P1, P2: heap memory that is not registered cannot be posted.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let _ = queue_pair.post_send(vec![0_u8; 64], .., 0);
}

fn todo<T>() -> T {
    loop {}
}

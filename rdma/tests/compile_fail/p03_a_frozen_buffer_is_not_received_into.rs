//! P3: a buffer that many can read is not written by the device.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let buffer: rdma::FrozenBuffer = todo();
    let _ = queue_pair.post_recv(buffer, 0);
}

fn todo<T>() -> T {
    loop {}
}

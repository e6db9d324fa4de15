//! P3: while the device has a buffer, nobody can look at it.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let buffer: rdma::Buffer = todo();
    queue_pair.post_recv(buffer, 0).unwrap();
    println!("{}", buffer[0]);
}

fn todo<T>() -> T {
    loop {}
}

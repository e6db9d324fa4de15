//! P3: a slice of a buffer keeps it from being posted.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let buffer: rdma::Buffer = todo();
    let slice = &buffer[..];
    queue_pair.post_recv(buffer, 0).unwrap();
    println!("{}", slice[0]);
}

fn todo<T>() -> T {
    loop {}
}

//! P1: there is no way to post an address.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let stack = [0_u8; 64];
    let _ = queue_pair.post_send(&stack[..], .., 0);
    let _ = queue_pair.post_recv(stack.as_ptr(), 0);
}

fn todo<T>() -> T {
    loop {}
}

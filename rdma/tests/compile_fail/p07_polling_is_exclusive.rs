//! P7: an iteration over completions has the queue to itself.
fn main() {
    let mut queue: rdma::CompletionQueue = todo();
    let completions = queue.completions();
    let _ = queue.poll_one();
    for completion in completions {}
}

fn todo<T>() -> T {
    loop {}
}

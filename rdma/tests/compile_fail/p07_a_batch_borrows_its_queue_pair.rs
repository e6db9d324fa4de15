//! P7: while a batch is being put together, nobody else posts; it cannot outlive its queue pair.
fn main() {
    let mut queue_pair: rdma::QueuePair = todo();
    let batch = queue_pair.send_batch::<4>();
    let _ = queue_pair.post_recv(todo::<rdma::Buffer>(), 0);
    drop(queue_pair);
    let _ = batch.submit();
}

fn todo<T>() -> T {
    loop {}
}

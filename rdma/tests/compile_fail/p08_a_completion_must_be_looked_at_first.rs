//! P8: neither bytes nor buffer without asking for success.
fn main() {
    let completion: rdma::Completion = todo();
    let _ = completion.bytes();
    let _ = completion.into_buffer();
}

fn todo<T>() -> T {
    loop {}
}

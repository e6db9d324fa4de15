//! P8, and A14 of the field: what a failed completion leaves undefined cannot be read.
fn main() {
    let failure: rdma::Failure = todo();
    let _ = failure.len();
    let _ = failure.bytes();
    let _ = failure.immediate();
}

fn todo<T>() -> T {
    loop {}
}

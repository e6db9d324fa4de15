//! P5: a library or a table of the caller's choice needs `unsafe`.
fn main() {
    let provider = rdma::Provider::from_verbs(todo());
    let library = rdma::Provider::library("/tmp/x.so");
}

fn todo<T>() -> T {
    loop {}
}

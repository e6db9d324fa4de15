//! P3: memory that others may write is never a slice.
fn main() {
    let buffer: rdma::SharedBuffer = todo();
    println!("{}", buffer[0]);
}

fn todo<T>() -> T {
    loop {}
}

//! B7 of the field: the memory behind a region cannot be reached, resized or swapped, because it has moved.
fn main() {
    let domain: rdma::ProtectionDomain = todo();
    let mut bytes = vec![0_u8; 1 << 16].into_boxed_slice();
    let region = domain.register_box(bytes).unwrap();
    bytes[0] = 1;
    drop(region);
}

fn todo<T>() -> T {
    loop {}
}

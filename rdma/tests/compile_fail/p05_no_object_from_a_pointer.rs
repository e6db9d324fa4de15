//! P5: no object can be made from a pointer.
fn main() {
    let device = rdma::Device::from(std::ptr::null_mut::<rdma_sys::ibv_device>());
}

//! P2: a region cannot borrow, so leaking it ends no borrow.
#![allow(unsafe_code)]
struct Borrowed<'a>(&'a mut [u8]);

unsafe impl rdma::StableMemory for Borrowed<'_> {
    fn bytes(&self) -> std::ptr::NonNull<[u8]> {
        std::ptr::NonNull::from(&*self.0)
    }
}

fn main() {}

//! Regions and the buffers that are cut from them.
#![allow(unsafe_code)]

use crate::support::pair::{connect, device, fabric, pair};
use rdma::{Buffer, ErrorKind, ProtectionDomain, SharedMemory, StableMemory};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn domain() -> ProtectionDomain {
    device(&fabric(), 0).open().unwrap().protection_domain().unwrap()
}

#[test]
fn a_region_is_zeroed_aligned_and_cut_into_disjoint_buffers() {
    let domain = domain();
    let region = domain.allocate(100_000).unwrap();
    assert_eq!((region.len(), region.available()), (100_000, 100_000));
    let mut buffers = region.buffers(20, 4096).unwrap();
    for (index, buffer) in buffers.iter_mut().enumerate() {
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer.fill(index as u8 + 1);
    }
    for (index, buffer) in buffers.iter().enumerate() {
        assert!(buffer.iter().all(|&byte| byte == index as u8 + 1));
        assert_eq!(buffer.as_ptr().addr() % 128, 0);
    }
    let whole = region.len();
    drop(buffers);
    assert_eq!(region.available(), whole);
    assert_eq!(region.buffer(whole).unwrap().as_ptr().addr() % domain.rules().alignment(), 0);
}

#[test]
fn what_a_region_cannot_give_is_an_error_that_says_what_it_has() {
    let domain = domain();
    assert_eq!(domain.allocate(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let region = domain.allocate(1000).unwrap();
    assert_eq!(region.buffer(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(region.buffer(1001).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(region.buffer(usize::MAX).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let taken = region.buffer(600).unwrap();
    let error = region.buffer(600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("400 are free"), "{error}");
    assert_eq!(region.buffers(3, 300).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!(region.available(), 400, "none is taken if not all are");
    drop(taken);
    // Longer than a stretch of 4 GiB, in which it must lie (SQCU/mesh).
    let error = domain.allocate((1 << 32) + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn buffers_split_and_join() {
    let region = domain().allocate(4096).unwrap();
    let mut buffer = region.buffer(1000).unwrap();
    buffer[..].iter_mut().enumerate().for_each(|(index, byte)| *byte = index as u8);
    let (first, rest) = buffer.split_at(300);
    let (second, third) = rest.split_at(200);
    assert_eq!((first.len(), second.len(), third.len()), (300, 200, 500));
    assert_eq!((second[0], third[0]), (300_u32 as u8, 500_u32 as u8));
    let (first, third) = first.join(third).unwrap_err();
    let joined = first.join(second).unwrap().join(third).unwrap();
    assert!(joined.iter().enumerate().all(|(index, &byte)| byte == index as u8));
    let (empty, whole) = joined.split_at(0);
    assert!(empty.is_empty());
    let whole = empty.join(whole).unwrap();
    let (whole, empty) = whole.split_at(1000);
    drop((whole, empty));
    assert_eq!(region.available(), 4096);
    let other = domain().allocate(4096).unwrap();
    assert!(region.buffer(10).unwrap().join(other.buffer(10).unwrap()).is_err());
}

#[test]
#[should_panic(expected = "split at 11 of a buffer of 10 bytes")]
fn a_split_past_the_end_panics_as_slices_do() {
    drop(domain().allocate(10).unwrap().buffer(10).unwrap().split_at(11));
}

/// A buffer keeps its region, domain and device, whatever is dropped first.
#[test]
fn a_buffer_outlives_every_handle() {
    let mut buffer: Buffer = domain().allocate(4096).unwrap().buffer(100).unwrap();
    buffer.fill(3);
    std::thread::spawn(move || assert_eq!(buffer.iter().map(|&byte| u32::from(byte)).sum::<u32>(), 300))
        .join()
        .unwrap();
}

#[test]
fn closing_says_whether_something_is_left() {
    let domain = domain();
    let region = domain.allocate(4096).unwrap();
    let buffer = region.buffer(1).unwrap();
    let copy = region.clone();
    assert_eq!(copy.close().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(domain.clone().close().unwrap_err().kind(), ErrorKind::Busy);
    drop(buffer);
    region.close().unwrap();
    domain.close().unwrap();
}

#[test]
fn memory_of_another_domain_is_refused_with_the_buffer() {
    let [mut a, mut b] = pair();
    let other = a.context.protection_domain().unwrap().allocate(4096).unwrap();
    for foreign in [other.buffer(64).unwrap(), b.region.buffer(64).unwrap()] {
        let error = a.queue_pair.post_recv(foreign, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("another protection domain"), "{error}");
        let error = a.queue_pair.post_send(error.into_memory().unwrap(), .., 0).unwrap_err();
        assert_eq!(error.into_memory().unwrap().len(), 64);
    }
    b.post_recv(64, 0);
}

/// The device does not know memory that was registered after the queue pair left RESET (Anemll/mlx-rdma): said before it
/// is asked.
#[test]
fn memory_registered_after_connecting_is_refused_with_the_buffer() {
    let [mut a, _b] = connect(&fabric(), |builder| builder);
    let late = a.domain.allocate(4096).unwrap();
    let error = a.queue_pair.post_recv(late.buffer(64).unwrap(), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.error().hint().unwrap().contains("first"), "{error}");
    assert!(error.error().errno().is_none(), "before the device is asked: {error}");
    assert_eq!(error.into_memory().unwrap().len(), 64);
}

#[test]
fn a_hundred_regions_and_then_an_error_that_says_so() {
    let domain = domain();
    let regions: Vec<_> = (0..100).map(|_| domain.allocate(1).unwrap()).collect();
    let error = domain.allocate(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(error.hint().unwrap().contains("100 regions"), "{error}");
    drop(regions);
    domain.allocate(1).unwrap();
}

/// Pages of our own, which count how often they are let go.
struct Pages {
    base: std::ptr::NonNull<[u8]>,
    layout: std::alloc::Layout,
    dropped: Arc<AtomicUsize>,
}

mod pages {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    impl Pages {
        pub(super) fn new(length: usize, alignment: usize, dropped: &Arc<AtomicUsize>) -> Self {
            let layout = Layout::from_size_align(length, alignment).unwrap();
            // SAFETY: the length is not 0.
            let base = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
            Pages { base: NonNull::slice_from_raw_parts(base, length), layout, dropped: dropped.clone() }
        }
    }

    // SAFETY: owned memory, reached through nothing else.
    unsafe impl Send for Pages {}
    // SAFETY: a shared reference gives out an address only.
    unsafe impl Sync for Pages {}

    // SAFETY: zeroed memory that does not move, and that nobody else has.
    unsafe impl StableMemory for Pages {
        fn bytes(&self) -> NonNull<[u8]> {
            self.base
        }
    }

    // SAFETY: mapped memory that does not move, to which no reference exists.
    unsafe impl SharedMemory for Pages {
        fn bytes(&self) -> NonNull<[u8]> {
            self.base
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            // SAFETY: allocated with this layout, freed once.
            unsafe { dealloc(self.base.as_ptr().cast(), self.layout) };
        }
    }
}

#[test]
fn memory_that_the_caller_brings() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let domain = domain();
    let page = domain.rules().alignment();
    let region = domain.register(Pages::new(3 * page, page, &dropped)).unwrap();
    let mut buffer = region.buffer(2 * page).unwrap();
    buffer.fill(1);
    drop((region, domain));
    assert_eq!(dropped.load(Ordering::Relaxed), 0, "a buffer keeps it");
    drop(buffer);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn memory_that_does_not_fit_the_device_is_refused_and_let_go() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let domain = domain();
    let page = domain.rules().alignment();
    // Aligned to half a page only.
    struct Half(Pages);
    // SAFETY: a part of memory for which the same holds.
    unsafe impl StableMemory for Half {
        fn bytes(&self) -> std::ptr::NonNull<[u8]> {
            let all = StableMemory::bytes(&self.0);
            let half = all.len() / 2;
            // SAFETY: within the allocation.
            std::ptr::NonNull::slice_from_raw_parts(unsafe { all.cast::<u8>().add(half) }, half)
        }
    }
    let error = domain.register(Half(Pages::new(page, page, &dropped))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.hint().unwrap().contains(&page.to_string()), "{error}");
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert!(domain.register_box(Box::new([])).is_err());
}

#[test]
fn shared_memory_is_posted_and_copied_but_never_a_slice() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let fabric = fabric();
    let ends = [0, 1].map(|host| crate::support::pair::Unconnected::open(&device(&fabric, host), 1 << 16));
    let page = ends[0].domain.rules().alignment();
    let shared = ends[1].domain.register_shared(Pages::new(page, page, &dropped)).unwrap();
    let mut prepared = ends.each_ref().map(|end| end.domain.queue_pair(&end.completions).build().unwrap());
    let endpoints = [0, 1].map(|index| {
        let port = ends[index].context.port(1).unwrap();
        prepared[index].endpoint(&port, port.gid().unwrap()).unwrap()
    });
    let [one, two] = prepared;
    let (mut one, mut two) = (one.connect(&endpoints[1]).unwrap(), two.connect(&endpoints[0]).unwrap());
    let [mut a, mut b] = ends;

    let mut target = shared.buffer(100).unwrap();
    target.copy_from_slice(90, &[7; 10]).unwrap();
    assert!(target.copy_from_slice(95, &[0; 6]).is_err() && target.copy_to_slice(usize::MAX, &mut [0]).is_err());
    two.post_recv_range(target, ..64, 1).unwrap();
    let mut source = a.region.buffer(64).unwrap();
    source.fill(5);
    one.post_send(source, .., 2).unwrap();
    let received = b.completions.wait(crate::support::LONG).unwrap().into_result().unwrap();
    assert_eq!(received.len(), 64);
    assert!(received.bytes().is_empty(), "no slice over memory that others may write");
    let rdma::Memory::Shared(target) = received.into_memory() else { panic!("another kind came back") };
    let mut bytes = [0; 100];
    target.copy_to_slice(0, &mut bytes).unwrap();
    assert_eq!((bytes[63], bytes[64], bytes[99]), (5, 0, 7));
    a.completions.wait(crate::support::LONG).unwrap().into_result().unwrap();
    let (left, right) = target.split_at(50);
    let joined = left.join(right).unwrap();
    two.post_send(joined, .., 3).unwrap();
    drop((one, two, a, b, shared));
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

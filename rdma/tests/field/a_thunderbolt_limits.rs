//! Group A: RDMA over Thunderbolt. Depth, memory, types, statuses.
#![allow(unsafe_code)]

use crate::support::fabrics;
use crate::support::pair::{connect, connect_devices, device, fabric, pair};
use crate::support::pattern;
use crate::support::raw::{Host, aligned, errno, send_wr, two, two_with};
use rdma::{Direction, ErrorKind, QueuePairType, Status};
use rdma_sys as sys;
use std::ptr::null_mut;
use std::sync::Mutex;

const FRAME: usize = 4096;

/// A completion with an error status among good ones is an error, and nothing of it can be taken for data.
#[test]
fn a14_the_status_cannot_be_overlooked() {
    let [mut a, mut b] = pair();
    for token in 0..3 {
        b.post_recv(if token == 1 { 2 * FRAME } else { 64 }, token);
        a.post_send(b"one frame", token);
    }
    let outcomes: Vec<_> = (0..3).map(|_| b.next().into_result()).collect();
    assert_eq!(outcomes[0].as_ref().unwrap().bytes(), b"one frame");
    let failure = outcomes[1].as_ref().unwrap_err();
    assert_eq!((failure.token(), failure.status()), (1, Status::LOC_LEN_ERR));
    assert_eq!(outcomes[2].as_ref().unwrap().bytes(), b"one frame");
}

/// Depth counts frames: floor(G/k) posts, then a full queue before the provider is asked, and one more after a poll.
#[test]
fn a15_depth_counts_frames() {
    for grant in [1023, 4095] {
        for frames in [1, 2, 4, 16] {
            let fabric = fabric();
            let devices = [device(&fabric, 0), device(&fabric, 1)];
            let [mut a, mut b] = connect_devices([&devices[0], &devices[1]], 20 << 20, |builder| {
                builder.depth(grant).send_requests(1).receive_requests(4095)
            });
            let mut posted = 0;
            let refused = loop {
                let buffer = b.region.buffer(frames * FRAME).unwrap();
                match b.queue_pair.post_recv(buffer, posted) {
                    Ok(()) => posted += 1,
                    Err(error) => break error,
                }
            };
            assert_eq!(posted, u64::from(grant) / frames as u64);
            assert_eq!(refused.kind(), ErrorKind::QueueFull);
            drop(refused);
            a.post_send(&vec![0; frames * FRAME], 0);
            drop(b.success());
            b.post_recv(frames * FRAME, posted);
            let buffer = b.region.buffer(frames * FRAME).unwrap();
            assert_eq!(b.queue_pair.post_recv(buffer, 0).unwrap_err().kind(), ErrorKind::QueueFull);
        }
    }
}

/// 256 asked, 1023 granted; of 70 receives of 16 frames 63 are posted, and 63 come.
#[test]
fn a17_the_grant_is_not_what_was_asked_for() {
    let fabric = fabric();
    let devices = [device(&fabric, 0), device(&fabric, 1)];
    let [mut a, mut b] =
        connect_devices([&devices[0], &devices[1]], 8 << 20, |builder| builder.depth(256).requests(128));
    assert_eq!(b.queue_pair.capacities().receive_depth, 1023);
    let mut batch = b.queue_pair.receive_batch::<70>();
    let posted = (0..70).take_while(|&token| batch.push(b.region.buffer(16 * FRAME).unwrap(), token).is_ok()).count();
    assert_eq!(posted, 63);
    batch.submit().unwrap();
    let message = a.filled(&pattern(1, 16 * FRAME)).freeze();
    for token in 0..63 {
        a.queue_pair.post_send(message.clone(), .., token).unwrap();
    }
    for token in 0..63 {
        assert_eq!(b.success().token(), token);
    }
    assert!(b.is_idle());
}

/// One scatter element: two are refused with nothing posted, and none is an empty message.
#[test]
fn a19_one_scatter_element() {
    let two = two();
    let mut init = two.a.init_attr(8);
    init.cap.max_send_sge = 2;
    // SAFETY: live objects.
    assert!(unsafe { (two.a.verbs.create_qp)(two.a.pd, &mut init) }.is_null());
    assert_eq!(errno(), libc::EINVAL);
    let mut list = [two.mem_a.sge(0, 8), two.mem_a.sge(64, 8)];
    let mut wr = sys::ibv_send_wr { num_sge: 2, ..send_wr(1, list.as_mut_ptr(), sys::IBV_SEND_SIGNALED) };
    // SAFETY: a live queue pair and a request over registered memory.
    assert_eq!(unsafe { sys::ibv_post_send(two.qp_a, &mut wr, &mut null_mut()) }, -libc::EINVAL);
    assert!(two.a.poll().is_empty());
}

/// RC and UD are unsupported, with the host's own errno.
#[test]
fn a21_only_uc() {
    let end = crate::support::pair::Unconnected::open(&device(&fabric(), 0), 4096);
    for kind in [QueuePairType::RC, QueuePairType::UD] {
        let error = end.domain.queue_pair(&end.completions).queue_pair_type(kind).build().unwrap_err();
        assert_eq!((error.kind(), error.errno().unwrap().raw()), (ErrorKind::Unsupported, libc::EOPNOTSUPP));
        assert_eq!(error.errno().unwrap().name(), "EOPNOTSUPP");
    }
}

/// A region across a multiple of 4 GiB: the library refuses and says why, the device refuses, the splitter cuts.
#[test]
fn a24_four_gib_borders() {
    struct Fake;
    // SAFETY: refused before anybody looks at the memory, which does not exist.
    unsafe impl rdma::StableMemory for Fake {
        fn bytes(&self) -> std::ptr::NonNull<[u8]> {
            let start = std::ptr::NonNull::new(std::ptr::without_provenance_mut::<u8>(0x2_ffff_c000)).unwrap();
            std::ptr::NonNull::slice_from_raw_parts(start, 0x8000)
        }
    }
    let end = crate::support::pair::Unconnected::open(&device(&fabric(), 0), 4096);
    let error = end.domain.register(Fake).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("0x300000000"), "{error}");
    assert_eq!(end.domain.rules().pieces(0x2_ffff_c000, 0x8000).unwrap(), [0..0x4000, 0x4000..0x8000]);
    // What the library allocates never crosses.
    for _ in 0..20 {
        let region = end.domain.allocate(1 << 20).unwrap();
        let first = region.buffer(1 << 20).unwrap().as_ptr().addr() as u64;
        assert_eq!(first >> 32, (first + (1 << 20) - 1) >> 32);
    }
}

/// Memory is aligned to the device's page of 16 KiB, whatever the host's is.
#[test]
fn a25_the_page_is_the_devices() {
    let host = Host::open(&fabrics::mesh(2), 0);
    let base = aligned(1 << 16);
    let register = |offset: usize, length: usize| {
        // SAFETY: a live domain; the device checks the range.
        unsafe {
            let mr = (host.verbs.reg_mr)(host.pd, base.wrapping_add(offset).cast(), length, 1);
            if mr.is_null() { errno() } else { (host.verbs.dereg_mr)(mr) }
        }
    };
    assert_eq!(register(4096, 100), libc::EINVAL);
    assert_eq!(register(16384, 1), 0);
    assert_eq!(register(0, 0), libc::EINVAL);
    let end = crate::support::pair::Unconnected::open(&device(&fabric(), 0), 4096);
    for pages in 1..=3 {
        let region = end.domain.allocate(pages * 16384).unwrap();
        assert_eq!(region.buffer(1).unwrap().as_ptr().addr() % 16384, 0);
    }
}

/// A send's completion says that the bytes left, not that they arrived: the message of a receiver that was in RESET is
/// gone, and the sender was told success.
#[test]
fn a27_a_send_completion_is_no_acknowledgement() {
    let fabric = fabric();
    let ends = [0, 1].map(|host| crate::support::pair::Unconnected::open(&device(&fabric, host), 1 << 16));
    let prepared = ends.each_ref().map(|end| {
        let mut prepared = end.domain.queue_pair(&end.completions).build().unwrap();
        let port = end.context.port(1).unwrap();
        let endpoint = prepared.endpoint(&port, port.gid().unwrap()).unwrap();
        (prepared, endpoint)
    });
    let [(here, local), (there, peer)] = prepared;
    let [mut a, mut b] = ends;
    let mut here = here.connect(&peer).unwrap();
    let mut buffer = a.region.buffer(8).unwrap();
    buffer.fill(1);
    here.post_send(buffer, .., 1).unwrap();
    let sent = a.completions.wait(crate::support::LONG).unwrap().into_result().unwrap();
    assert_eq!(sent.direction(), Direction::Send);
    let mut there = there.connect(&local).unwrap();
    there.post_recv(b.region.buffer(8).unwrap(), 2).unwrap();
    std::thread::sleep(crate::support::SHORT);
    assert!(b.completions.poll_one().unwrap().is_none(), "nothing ever comes");
}

/// Four threads share a queue pair through a lock; messages of one to five frames keep their borders and order.
#[test]
fn a32_messages_keep_their_borders() {
    const EACH: u64 = 1_000;
    let [a, mut b] = connect(&fabric(), |builder| builder.requests(64));
    let crate::support::pair::End { queue_pair, mut completions, region, .. } = a;
    // (thread, sequence) of each message, in the order in which they were posted.
    let sender = Mutex::new((queue_pair, Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (sender, region) = (&sender, &region);
            scope.spawn(move || {
                for sequence in 0..EACH {
                    let length = (1 + (thread + sequence) % 5) as usize * FRAME - 9;
                    let mut buffer = region.buffer(length).unwrap();
                    buffer.copy_from_slice(&pattern(thread << 32 | sequence, length));
                    let mut waiting = Some(buffer);
                    while let Some(buffer) = waiting.take() {
                        let (queue_pair, order) = &mut *sender.lock().unwrap();
                        match queue_pair.post_send(buffer, .., 0) {
                            Ok(()) => order.push((thread, sequence)),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::QueueFull);
                                waiting = error.into_memory();
                            }
                        }
                    }
                    std::thread::yield_now();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..4 * EACH {
                completions.wait(crate::support::LONG).unwrap().into_result().unwrap();
            }
        });
        let mut next = [0; 4];
        for message in 0..4 * EACH as usize {
            // The receiver is told which message comes, and posts exactly its frames.
            let mut coming = None;
            crate::support::eventually("the next message to be posted", || {
                coming = sender.lock().unwrap().1.get(message).copied();
                coming.is_some()
            });
            let (thread, sequence) = coming.unwrap();
            assert_eq!(sequence, next[thread as usize]);
            next[thread as usize] += 1;
            let length = (1 + (thread + sequence) % 5) as usize * FRAME - 9;
            b.post_recv(length, message as u64);
            let received = b.success();
            assert_eq!(received.token(), message as u64);
            assert!(received.bytes() == pattern(thread << 32 | sequence, length));
        }
    });
}

/// Two requests at once on one queue pair: −12 and +12 are one thing, "full", and with a lock nothing is torn.
#[test]
fn a34_a_full_queue_is_full_whatever_the_sign() {
    let two = two_with(fabrics::mesh(2), 1023, 1 << 16);
    let mut returned = 0;
    while returned == 0 {
        returned = two.b.post_recv(two.qp_b, 0, two.mem_b.sge(0, 1 << 16));
    }
    assert_eq!(returned, -libc::ENOMEM);
    assert_eq!(sys::errno_of(returned, || 0), sys::errno_of(-returned, || 0));
}

//! Sequences of C calls with hostile arguments through the function table of the software device.
//!
//! Hostile is what the device says it refuses (`rdma/src/soft/registry.rs`): for control calls any pointer, live, freed,
//! of another kind, null or invented; any numbers. For post and poll, which trust the object as every provider does: live
//! objects or null, and any work request. Structures of the caller's are real or null.
//!
//! What must hold: an error has an errno; a pointer that is not a live object of the right kind is never taken; each
//! request completes at most once; and in the end everything can be taken down in order.
#![no_main]
#![allow(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use rdma::Provider;
use rdma_fuzz::Choices;
use rdma_sys as sys;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use sys::ibv_qp_state as state;

const PAGE: usize = 16384;
const ARENA: usize = 16 * PAGE;

/// Memory between two stretches that cannot be used, so that no length reaches anything else.
fn arena() -> usize {
    static BASE: OnceLock<usize> = OnceLock::new();
    *BASE.get_or_init(|| {
        let guard = 1 << 30;
        // SAFETY: a new mapping, of which the middle is made usable.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let whole = libc::mmap(null_mut(), 2 * guard + ARENA, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(whole, libc::MAP_FAILED);
            let middle = (whole as usize + guard).next_multiple_of(PAGE);
            let usable = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(middle as *mut c_void, ARENA, usable), 0);
            middle
        }
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Context,
    Domain,
    Region,
    Queue,
    Pair,
}

/// One host, and every pointer it has ever given out.
struct Host {
    verbs: sys::Verbs,
    device: *mut sys::ibv_device,
    // Keeps the table and the device.
    _provider: Provider,
}

#[derive(Default)]
struct World {
    /// Every pointer ever seen, and what the live ones are.
    seen: Vec<usize>,
    live: HashMap<usize, Kind>,
    /// In the order in which they were made: taken down in reverse.
    order: Vec<(usize, Kind)>,
    posted: HashSet<u64>,
    next_id: u64,
}

impl World {
    /// A pointer for a call that wants one of this kind: mostly right.
    fn pointer<T>(&self, choices: &mut Choices<'_>, wanted: Kind) -> *mut T {
        match choices.below(16) {
            0 => null_mut(),
            1 => choices.of(&[1_usize, 8, 4095, usize::MAX, usize::MAX - 7]) as *mut T,
            2 if !self.seen.is_empty() => self.seen[choices.below(self.seen.len())] as *mut T,
            _ => self.right(choices, wanted),
        }
    }

    /// A live one, or null.
    fn right<T>(&self, choices: &mut Choices<'_>, wanted: Kind) -> *mut T {
        let all: Vec<_> = self.order.iter().filter(|(_, kind)| *kind == wanted).collect();
        if all.is_empty() { null_mut() } else { all[choices.below(all.len())].0 as *mut T }
    }

    fn is(&self, pointer: usize, kind: Kind) -> bool {
        self.live.get(&pointer) == Some(&kind)
    }

    fn made<T>(&mut self, pointer: *mut T, kind: Kind) {
        if pointer.is_null() {
            let errno = std::io::Error::last_os_error().raw_os_error();
            assert!(errno.is_some_and(|errno| errno > 0), "null without an errno");
            return;
        }
        let pointer = pointer as usize;
        assert!(self.live.insert(pointer, kind).is_none(), "a live object was handed out again");
        self.seen.push(pointer);
        self.order.push((pointer, kind));
    }

    /// A call that ends an object answered `result`.
    fn ended(&mut self, pointer: usize, kind: Kind, result: c_int) {
        if result == 0 {
            assert!(self.is(pointer, kind), "ended what was no live {kind:?}");
            self.live.remove(&pointer);
            self.order.retain(|&(other, _)| other != pointer);
        } else {
            assert!(result > 0, "{result} is no errno");
        }
    }
}

fn number(choices: &mut Choices<'_>) -> u32 {
    let kind = choices.below(4);
    match kind {
        0 => choices.word() as u32,
        1 => choices.of(&[0, 1, 255, 1023, 1024, 4095, 4096, 4097, u32::MAX, i32::MAX as u32]),
        _ => u32::from(choices.byte()),
    }
}

fn sge(choices: &mut Choices<'_>, world: &World) -> sys::ibv_sge {
    let region: *mut sys::ibv_mr = world.right(choices, Kind::Region);
    // SAFETY: live, or null.
    let (base, key) = match unsafe { region.as_ref() } {
        Some(region) => (region.addr as u64, region.lkey),
        None => (arena() as u64, 0),
    };
    let address = match choices.below(8) {
        0 => choices.word(),
        1 => base.wrapping_add(choices.word() % (2 * ARENA as u64)),
        _ => base + u64::from(choices.byte()),
    };
    sys::ibv_sge {
        addr: address,
        length: number(choices),
        lkey: if choices.below(8) == 0 { choices.word() as u32 } else { key },
    }
}

fn attributes(choices: &mut Choices<'_>, hosts: &[Host; 2], world: &World) -> (sys::ibv_qp_attr, c_int) {
    let any = state(choices.byte().into());
    let to = choices.of(&[
        state::IBV_QPS_INIT,
        state::IBV_QPS_RTR,
        state::IBV_QPS_RTS,
        state::IBV_QPS_RESET,
        state::IBV_QPS_ERR,
        any,
    ]);
    let mut wanted = sys::ibv_qp_attr { qp_state: to, port_num: 1, ..Default::default() };
    let peer: *mut sys::ibv_qp = world.right(choices, Kind::Pair);
    // SAFETY: live, or null.
    wanted.dest_qp_num = unsafe { peer.as_ref() }.map_or(0, |peer| peer.qp_num);
    wanted.path_mtu = sys::ibv_mtu(5);
    wanted.ah_attr.is_global = 1;
    wanted.ah_attr.port_num = 1;
    wanted.ah_attr.grh.sgid_index = 1;
    let context: *mut sys::ibv_context = world.right(choices, Kind::Context);
    // SAFETY: a live context or null, which is refused.
    unsafe { (hosts[0].verbs.query_gid)(context, 1, 1, &mut wanted.ah_attr.grh.dgid) };
    let mut mask: c_int = match to {
        state::IBV_QPS_INIT => 1 | 1 << 4 | 1 << 5 | 1 << 3,
        state::IBV_QPS_RTR => 1 | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12,
        state::IBV_QPS_RTS => 1 | 1 << 16,
        _ => 1,
    };
    match choices.below(16) {
        0 => mask = choices.word() as c_int,
        1 => wanted.port_num = choices.byte(),
        2 => wanted.qp_access_flags = number(choices),
        3 => wanted.path_mtu = sys::ibv_mtu(number(choices)),
        4 => wanted.ah_attr.grh.dgid = sys::ibv_gid { raw: std::array::from_fn(|_| choices.byte()) },
        5 => wanted.ah_attr.grh.sgid_index = choices.byte(),
        6 => wanted.dest_qp_num = number(choices),
        _ => {}
    }
    (wanted, mask)
}

fn post(choices: &mut Choices<'_>, world: &mut World) {
    let qp: *mut sys::ibv_qp = world.right(choices, Kind::Pair);
    let count = 1 + choices.below(4);
    let mut list: Vec<_> = (0..count).map(|_| sge(choices, world)).collect();
    let elements: Vec<_> = (0..count).map(|_| choices.of(&[1, 1, 1, 1, 0, 2, -1, c_int::MAX])).collect();
    let nulls: Vec<_> = (0..count).map(|_| choices.below(16) == 0).collect();
    let first = world.next_id;
    world.next_id += count as u64;
    world.posted.extend(first..world.next_id);
    let ids = first..world.next_id;
    // Inline data is read from wherever it is said to be, as by every device: that much a caller answers for.
    let readable: Vec<_> = list
        .iter()
        .map(|sge| sge.addr.checked_sub(arena() as u64).is_some_and(|at| at + u64::from(sge.length) <= ARENA as u64))
        .collect();
    let lists: Vec<*mut sys::ibv_sge> =
        list.iter_mut().zip(&nulls).map(|(sge, &null)| if null { null_mut() } else { &raw mut *sge }).collect();
    // SAFETY: a live queue pair, or a null one where that is refused before anything is read; chains and lists that live
    // through the call.
    unsafe {
        if choices.flag() {
            let mut chain: Vec<_> = ids
                .enumerate()
                .map(|(index, wr_id)| sys::ibv_send_wr {
                    wr_id,
                    sg_list: lists[index],
                    num_sge: elements[index],
                    opcode: sys::ibv_wr_opcode(if choices.below(16) == 0 { number(choices) } else { 2 }),
                    send_flags: if choices.below(8) == 0 { number(choices) } else { 2 }
                        & if readable[index] { u32::MAX } else { !sys::IBV_SEND_INLINE },
                    ..Default::default()
                })
                .collect();
            for index in 1..count {
                chain[index - 1].next = &raw mut chain[index];
            }
            let mut bad = null_mut();
            let bad: *mut *mut sys::ibv_send_wr = if choices.below(8) == 0 { null_mut() } else { &raw mut bad };
            if !qp.is_null() {
                let result = sys::ibv_post_send(qp, chain.as_mut_ptr(), bad);
                assert!(result.abs() < 200, "{result}");
                let post = (*(*qp).context).ops.post_send.unwrap();
                assert_eq!(post(null_mut(), chain.as_mut_ptr(), bad), libc::EINVAL);
            }
        } else {
            let mut chain: Vec<_> = ids
                .enumerate()
                .map(|(index, wr_id)| sys::ibv_recv_wr {
                    wr_id,
                    next: null_mut(),
                    sg_list: lists[index],
                    num_sge: elements[index],
                })
                .collect();
            for index in 1..count {
                chain[index - 1].next = &raw mut chain[index];
            }
            let mut bad = null_mut();
            let bad: *mut *mut sys::ibv_recv_wr = if choices.below(8) == 0 { null_mut() } else { &raw mut bad };
            if !qp.is_null() {
                let result = sys::ibv_post_recv(qp, chain.as_mut_ptr(), bad);
                assert!(result.abs() < 200, "{result}");
            }
        }
    }
}

fn poll(choices: &mut Choices<'_>, world: &mut World) {
    let cq: *mut sys::ibv_cq = world.right(choices, Kind::Queue);
    if cq.is_null() {
        return;
    }
    let mut completions = [sys::ibv_wc::default(); 32];
    let count = choices.of(&[0, 1, 3, 32, -1, c_int::MIN]);
    let place = if choices.below(8) == 0 { null_mut() } else { completions.as_mut_ptr() };
    // SAFETY: a live queue, and room for 32 completions, or null.
    let taken = unsafe { sys::ibv_poll_cq(cq, count, place) };
    if count < 0 || (place.is_null() && count != 0) {
        assert_eq!(taken, -libc::EINVAL);
        return;
    }
    assert!((0..=count).contains(&taken));
    for completion in &completions[..taken as usize] {
        assert!(world.posted.remove(&completion.wr_id), "a completion that is not of a request, or a second one");
    }
}

/// One call. All are made through the table of one host, with objects of both.
fn call(choices: &mut Choices<'_>, hosts: &[Host; 2], world: &mut World) {
    let host = &hosts[choices.below(2)];
    let verbs = &host.verbs;
    // SAFETY: control calls take any pointer to an object; structures are ours, or null.
    unsafe {
        match choices.below(20) {
            0 => {
                let device = if choices.below(8) == 0 { 8 as *mut _ } else { host.device };
                world.made((verbs.open_device)(device), Kind::Context);
            }
            1 => {
                let context = world.pointer(choices, Kind::Context);
                world.made((verbs.alloc_pd)(context), Kind::Domain);
            }
            2 | 3 => {
                let domain = world.pointer(choices, Kind::Domain);
                let address = match choices.below(8) {
                    0 => choices.of(&[0_usize, PAGE, usize::MAX & !(PAGE - 1), 1 << 47]),
                    1 => arena() + usize::from(choices.byte()),
                    _ => arena() + choices.below(16) * PAGE,
                };
                let length = choices.of(&[PAGE, 1, 0, ARENA, ARENA + 1, usize::MAX, usize::MAX - PAGE, 1 << 32]);
                let access = if choices.below(4) == 0 { number(choices) as c_int } else { 1 };
                let region = match verbs.reg_mr_iova2 {
                    Some(register) if choices.below(4) == 0 => {
                        register(domain, address as *mut c_void, length, address as u64, access as u32)
                    }
                    _ => (verbs.reg_mr)(domain, address as *mut c_void, length, access),
                };
                world.made(region, Kind::Region);
            }
            4 => {
                let context = world.pointer(choices, Kind::Context);
                let channel = if choices.below(16) == 0 { 8 as *mut _ } else { null_mut() };
                let vector = if choices.below(16) == 0 { number(choices) as c_int } else { 0 };
                let queue = (verbs.create_cq)(context, number(choices) as c_int, 8 as *mut c_void, channel, vector);
                world.made(queue, Kind::Queue);
            }
            5 | 6 => {
                let domain = world.pointer(choices, Kind::Domain);
                let mut init = sys::ibv_qp_init_attr {
                    send_cq: world.pointer(choices, Kind::Queue),
                    recv_cq: world.pointer(choices, Kind::Queue),
                    qp_type: sys::ibv_qp_type(if choices.below(8) == 0 { number(choices) } else { 3 }),
                    sq_sig_all: number(choices) as c_int,
                    ..Default::default()
                };
                init.cap.max_send_wr = number(choices);
                init.cap.max_recv_wr = number(choices);
                init.cap.max_send_sge = if choices.below(8) == 0 { number(choices) } else { 1 };
                init.cap.max_recv_sge = 1;
                let init = if choices.below(32) == 0 { null_mut() } else { &raw mut init };
                world.made((verbs.create_qp)(domain, init), Kind::Pair);
            }
            7..=9 => {
                let pair: *mut sys::ibv_qp = world.pointer(choices, Kind::Pair);
                let (mut wanted, mask) = attributes(choices, hosts, world);
                let wanted = if choices.below(32) == 0 { null_mut() } else { &raw mut wanted };
                let result = (verbs.modify_qp)(pair, wanted, mask);
                assert!(result >= 0 && (result != 0 || world.is(pair as usize, Kind::Pair)));
            }
            10 => {
                let pair: *mut sys::ibv_qp = world.pointer(choices, Kind::Pair);
                let (mut attributes, mut init) = Default::default();
                let result = (verbs.query_qp)(pair, &mut attributes, number(choices) as c_int, &mut init);
                assert_eq!(result == 0, world.is(pair as usize, Kind::Pair));
            }
            11 => {
                let context = world.pointer(choices, Kind::Context);
                let (mut device, mut port, mut gid) = Default::default();
                (verbs.query_device)(context, &mut device);
                (verbs.query_port)(context, choices.byte(), &mut port);
                (verbs.query_gid)(context, choices.byte(), number(choices) as c_int, &mut gid);
            }
            12 => {
                let region: *mut sys::ibv_mr = world.pointer(choices, Kind::Region);
                let result = (verbs.dereg_mr)(region);
                world.ended(region as usize, Kind::Region, result);
            }
            13 => {
                let pair: *mut sys::ibv_qp = world.pointer(choices, Kind::Pair);
                let result = (verbs.destroy_qp)(pair);
                world.ended(pair as usize, Kind::Pair, result);
            }
            14 => match choices.below(3) {
                0 => {
                    let queue: *mut sys::ibv_cq = world.pointer(choices, Kind::Queue);
                    let result = (verbs.destroy_cq)(queue);
                    world.ended(queue as usize, Kind::Queue, result);
                }
                1 => {
                    let domain: *mut sys::ibv_pd = world.pointer(choices, Kind::Domain);
                    let result = (verbs.dealloc_pd)(domain);
                    world.ended(domain as usize, Kind::Domain, result);
                }
                _ => {
                    let context: *mut sys::ibv_context = world.pointer(choices, Kind::Context);
                    let result = (verbs.close_device)(context);
                    world.ended(context as usize, Kind::Context, result);
                }
            },
            15 | 16 => poll(choices, world),
            _ => post(choices, world),
        }
    }
}

/// Each with other rules for posting, matching or failing.
const PROFILES: [&str; 6] = [
    "thunderbolt",
    "thunderbolt_27",
    "classic",
    "thunderbolt,over_posting=lost,bad_wr=unset,post_errors=minus_one,matching=mispairing",
    "classic,matching=packets,receives_from=rts,lint=yes",
    "thunderbolt,failure_fields=garbage,loopback=refused,empty=lost,access=all",
];

fuzz_target!(|bytes: &[u8]| {
    let fabric = rdma_fuzz::pair(bytes, &PROFILES);
    let hosts = [0, 1].map(|index| {
        let provider = Provider::soft(&fabric.host(index).unwrap()).unwrap();
        let verbs = *provider.verbs();
        let mut count = 0;
        // SAFETY: the list is read before it is freed; the device lives as long as the fabric.
        let device = unsafe {
            let list = (verbs.get_device_list)(&mut count);
            let device = *list;
            (verbs.free_device_list)(list);
            (verbs.free_device_list)(list);
            device
        };
        Host { verbs, device, _provider: provider }
    });
    let mut world = World::default();
    let mut choices = Choices::new(bytes);
    // One object of each kind on each host, so that most calls have something to work with.
    for host in &hosts {
        // SAFETY: live objects, and memory of that length.
        unsafe {
            let context = (host.verbs.open_device)(host.device);
            world.made(context, Kind::Context);
            let domain = (host.verbs.alloc_pd)(context);
            world.made(domain, Kind::Domain);
            let queue = (host.verbs.create_cq)(context, 8, null_mut(), null_mut(), 0);
            world.made(queue, Kind::Queue);
            world.made((host.verbs.reg_mr)(domain, arena() as *mut c_void, ARENA, 1), Kind::Region);
            let mut init = sys::ibv_qp_init_attr {
                send_cq: queue,
                recv_cq: queue,
                qp_type: sys::ibv_qp_type(3),
                ..Default::default()
            };
            world.made((host.verbs.create_qp)(domain, &mut init), Kind::Pair);
        }
    }
    for _ in 0..200 {
        if choices.is_over() {
            break;
        }
        call(&mut choices, &hosts, &mut world);
    }
    // Children before parents, and then nothing may be in the way.
    for kind in [Kind::Pair, Kind::Region, Kind::Queue, Kind::Domain, Kind::Context] {
        while let Some(&(pointer, _)) = world.order.iter().find(|(_, other)| *other == kind) {
            let verbs = &hosts[0].verbs;
            // SAFETY: live objects, ended once.
            let result = unsafe {
                match kind {
                    Kind::Pair => (verbs.destroy_qp)(pointer as *mut _),
                    Kind::Region => (verbs.dereg_mr)(pointer as *mut _),
                    Kind::Queue => (verbs.destroy_cq)(pointer as *mut _),
                    Kind::Domain => (verbs.dealloc_pd)(pointer as *mut _),
                    Kind::Context => (verbs.close_device)(pointer as *mut _),
                }
            };
            assert_eq!(result, 0, "a {kind:?} could not be ended");
            world.ended(pointer, kind, result);
        }
    }
});

//! Each call that can fail, failing with each errno that the field has seen there: the message names call, device and errno,
//! and ends with the remedy that the catalogue has for it.

use super::provider::{Turn, plan, turn_with};
use rdma::soft::Profile;
use rdma::{Error, ErrorKind, Result, connect};
use rdma_sys::ibv_qp_state;
use std::ffi::c_int;

/// From the library to a posted send and receive: the first error.
fn set_up(turn: &Turn) -> Result<()> {
    let (here, there) = (turn.hostile.devices()?.remove(0).open()?, turn.other.devices()?.remove(0).open()?);
    let (near, far) = (here.protection_domain()?, there.protection_domain()?);
    let (sent, received) = (here.completion_queue(16)?, there.completion_queue(16)?);
    let (region, other) = (near.allocate(8192)?, far.allocate(4096)?);
    let (near, far) = (near.queue_pair(&sent).build()?, far.queue_pair(&received).build()?);
    let (mut near, mut far) = connect::pair(near, far)?;
    far.post_recv(other.buffer(64)?, 1).map_err(Error::from)?;
    near.post_recv(region.buffer(64)?, 2).map_err(Error::from)?;
    near.post_send(region.buffer(64)?, .., 3).map_err(Error::from)?;
    Ok(())
}

/// What the calls say that return a number, or null.
fn error_of(profile: Profile, call: &'static str, errno: c_int) -> Error {
    let turn = turn_with(profile);
    match call {
        "ibv_modify_qp" => plan().modify_qp = Some((ibv_qp_state::IBV_QPS_RTR, errno)),
        // With a minus, as Apple's does.
        "ibv_post_recv" => plan().post = Some((-errno, false)),
        _ => plan().refuse = Some((call, errno)),
    }
    set_up(&turn).expect_err(call)
}

fn error(call: &'static str, errno: c_int) -> Error {
    error_of(Profile::thunderbolt(), call, errno)
}

#[test]
fn every_call_says_what_to_do() {
    use libc::*;
    let cases: [(&str, &[c_int], ErrorKind, &str); 17] = [
        ("ibv_alloc_pd", &[EOPNOTSUPP, ESRCH], ErrorKind::PortDown, "RDMA is enabled on both ends"),
        ("ibv_alloc_pd", &[ENOMEM, EBUSY], ErrorKind::LimitReached, "until the Mac is restarted"),
        ("ibv_create_cq", &[EINVAL], ErrorKind::InvalidArgument, "completion queues of 1 to 4096"),
        ("ibv_create_cq", &[ENOMEM, EBUSY], ErrorKind::LimitReached, "share one between queue pairs"),
        ("ibv_create_qp", &[EBUSY], ErrorKind::LimitReached, "retrying cannot help"),
        ("ibv_create_qp", &[EOPNOTSUPP], ErrorKind::Unsupported, "queue pairs of type UC only"),
        ("ibv_create_qp", &[EINVAL], ErrorKind::InvalidArgument, "DeviceRules"),
        ("ibv_reg_mr", &[ENOMEM], ErrorKind::LimitReached, "cut one large region into many buffers"),
        ("ibv_reg_mr", &[EINVAL], ErrorKind::InvalidArgument, "one 4 GiB stretch"),
        ("ibv_modify_qp", &[EINVAL], ErrorKind::InvalidArgument, "usually the GID"),
        ("ibv_modify_qp", &[ETIMEDOUT, EHOSTUNREACH], ErrorKind::UnreachablePeer, "which device is cabled to which"),
        ("ibv_modify_qp", &[EBUSY], ErrorKind::LimitReached, "wait half a minute"),
        ("ibv_modify_qp", &[EFAULT], ErrorKind::OutOfMemory, "register less"),
        ("ibv_modify_qp", &[ENODATA], ErrorKind::LimitReached, "only a restart of the Mac"),
        ("ibv_post_recv", &[ENOMEM, EAGAIN], ErrorKind::QueueFull, "poll the completion queue"),
        ("ibv_post_recv", &[EFAULT], ErrorKind::InvalidArgument, "register first, then connect"),
        ("ibv_open_device", &[ENODEV, ENXIO], ErrorKind::UnknownDevice, "was the cable pulled?"),
    ];
    for (call, errnos, kind, words) in cases {
        for &errno in errnos {
            let error = error(call, errno);
            let text = error.to_string();
            assert_eq!((error.kind(), error.failed_call()), (kind, Some(call)), "{text}");
            assert_eq!(error.errno().map(|errno| errno.raw()), Some(errno), "{text}");
            assert!(text.starts_with(&format!("{call} on rdma_en2")), "{text}");
            assert!(text.contains(&error.errno().unwrap().to_string()) && !text.contains("errno ("), "{text}");
            let remedy = error.hint().expect(&text);
            assert!(remedy.contains(words) && text.ends_with(&format!("({remedy})")), "{text}");
            assert!(error.cause().is_some() && error.reference().is_some(), "{text}");
            // What may be retried, somebody says when.
            assert!(!error.is_retryable() || error.retry_when().is_some(), "{text}");
        }
    }
}

/// A network adapter fails with the same numbers for other reasons, and nobody there is told of frames or of Macs.
#[test]
fn adapters_have_other_remedies() {
    use libc::*;
    for (call, errno, words) in [
        ("ibv_alloc_pd", ENOMEM, "make one and share it"),
        ("ibv_create_cq", ENOMEM, "ulimit -l"),
        ("ibv_create_qp", ENOMEM, "ulimit -l"),
        ("ibv_create_qp", EBUSY, "close one"),
        ("ibv_create_qp", EOPNOTSUPP, "QueuePairType::RC"),
        ("ibv_reg_mr", ENOMEM, "ulimit -l"),
        ("ibv_reg_mr", EINVAL, "max_mr_size"),
        ("ibv_modify_qp", EINVAL, "path MTU"),
        ("ibv_modify_qp", ETIMEDOUT, "reach each other"),
        ("ibv_post_recv", ENOMEM, "not signaled"),
    ] {
        let error = error_of(Profile::classic(), call, errno);
        let text = error.to_string();
        assert_eq!((error.failed_call(), error.errno().unwrap().raw()), (Some(call), errno), "{text}");
        // Under macOS nobody has seen an adapter: the limit of locked memory is Linux's.
        assert!(text.contains(words) || (words == "ulimit -l" && !cfg!(target_os = "linux")), "{text}");
        assert!(
            !["Mac", "cable", "frame", "Thunderbolt"].iter().any(|word| error.hint().unwrap().contains(word)),
            "{text}"
        );
    }
}

/// Nothing of which anything is known: the errno by its name, and no remedy made up.
#[test]
fn what_nobody_has_seen_has_no_remedy() {
    for (call, errno) in
        [("ibv_modify_qp", libc::EXDEV), ("ibv_alloc_pd", libc::ERANGE), ("ibv_open_device", libc::EIO)]
    {
        let error = error(call, errno);
        assert_eq!((error.hint(), error.cause(), error.retry_when()), (None, None, None), "{error}");
        assert!(error.to_string().contains(&format!("({errno})")), "{error}");
    }
}

/// Without a device there is none to name.
#[test]
fn a_list_that_is_refused() {
    let error = error("ibv_get_device_list", libc::EPERM);
    assert!(error.to_string().starts_with("ibv_get_device_list: EPERM (1) ("), "{error}");
    if cfg!(target_os = "linux") {
        assert!(error.hint().unwrap().contains("/dev/infiniband"), "{error}");
    }
}

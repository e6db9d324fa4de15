//! Whether two processes can meet.

use rdma::Provider;

/// The error if this end, with the provider of this name or else the environment's, is on a software fabric that no other
/// process can be on. Two such ends would connect, and wait for messages in vain.
pub(crate) fn check(provider: Option<&str>) -> Result<(), &'static str> {
    let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_soft = match provider {
        Some(name) => name == "soft",
        None => value(Provider::VARIABLE).is_some_and(|name| name == "soft"),
    };
    if is_soft && value("RDMA_SOFT_FABRIC").is_none() {
        return Err("without a name the software fabric is this process's alone, and no other end can be on it (set \
                    RDMA_SOFT_FABRIC to the same name on both sides, and RDMA_SOFT_HOST to 0 here and 1 there, or the \
                    other way round)");
    }
    Ok(())
}

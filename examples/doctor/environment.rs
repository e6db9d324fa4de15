//! What the environment says of providers: what a program is told that asks for `Provider::from_env`.

use crate::finding::Finding;
use crate::variables;
use rdma::Provider;

const CHECK: &str = "environment";
const REMEDY: &str = "change the variable, or unset it: docs/soft.md says what each may be";

/// Nothing, if it says nothing.
pub(crate) fn check() -> Vec<Finding> {
    let mut set: Vec<_> = std::env::vars_os()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    set.sort();
    provider(&set).into_iter().chain(variables::check(CHECK, &set)).collect()
}

fn provider(set: &[String]) -> Option<Finding> {
    let soft: Vec<_> = set
        .iter()
        .map(String::as_str)
        .filter(|name| name.starts_with("RDMA_SOFT_") && variables::KNOWN.contains(name))
        // Where files are describes nothing.
        .filter(|&name| name != "RDMA_SOFT_DIRECTORY")
        .collect();
    if !set.iter().any(|name| name == Provider::VARIABLE) {
        if soft.is_empty() {
            return None;
        }
        // Others read them, too: the C library, `Provider::named`.
        return Some(match Provider::named("soft") {
            Ok(_) => {
                let remedy = "set RDMA_PROVIDER=soft, or name the provider `soft`; the C library needs neither";
                let summary = "a software fabric is described, which the installed library is preferred to";
                Finding::warning(CHECK, summary, remedy).evidence(soft.join(", "))
            }
            Err(error) => wrong(&error),
        });
    }
    let name = std::env::var_os(Provider::VARIABLE).unwrap_or_default();
    match Provider::from_env() {
        Ok(_) => Some(Finding::ok(CHECK, format!("RDMA_PROVIDER is {}", name.to_string_lossy()))),
        // What is wrong with the installed library is a finding of its own.
        Err(_) if name == "system" => Some(Finding::ok(CHECK, "RDMA_PROVIDER is system")),
        Err(error) => Some(wrong(&error)),
    }
}

fn wrong(error: &rdma::Error) -> Finding {
    Finding::problem(CHECK, "the environment describes no provider", REMEDY).evidence(error.to_string())
}

/// Whether programs use the software fabric already.
pub(crate) fn is_soft() -> bool {
    std::env::var_os(Provider::VARIABLE).is_some_and(|name| name == "soft")
}

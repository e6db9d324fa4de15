//! `rdma_ctl status`: whether RDMA is switched on.

/// `None` if it says neither `enabled` nor `disabled`.
pub(crate) fn parse(text: &str) -> Option<bool> {
    text.split(|character: char| !character.is_ascii_alphabetic()).find_map(|word| match word {
        "enabled" | "Enabled" => Some(true),
        "disabled" | "Disabled" => Some(false),
        _ => None,
    })
}

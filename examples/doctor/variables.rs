//! Variables that look as if they meant something: a name that is misspelt is not read, and nobody says so.

use crate::finding::Finding;

/// Those that are read.
pub(crate) const KNOWN: [&str; 9] = [
    "RDMA_LIBRARY",
    "RDMA_PROVIDER",
    "RDMA_SOFT_DIRECTORY",
    "RDMA_SOFT_FABRIC",
    "RDMA_SOFT_FAULTS",
    "RDMA_SOFT_HOST",
    "RDMA_SOFT_PAGE",
    "RDMA_SOFT_PROFILE",
    "RDMA_SOFT_TOPOLOGY",
];

/// More changes than this make another word.
const NEAR: usize = 2;

/// About the names of all variables that are set, and not empty.
pub(crate) fn check(check: &'static str, set: &[String]) -> Vec<Finding> {
    let unknown = set.iter().filter(|name| name.starts_with("RDMA_") && !KNOWN.contains(&name.as_str()));
    let mut all: Vec<_> = unknown
        .map(|name| {
            let remedy = match nearest(name) {
                Some(known) => format!("set {known} instead, if that is what it should be"),
                None => {
                    "if it is meant for this library, see docs/soft.md for the names; other programs may have their own"
                        .to_owned()
                }
            };
            Finding::warning(check, "nothing here reads this variable", remedy).on(name)
        })
        .collect();
    let is_set = |name: &str| set.iter().any(|one| one == name);
    if is_set("RDMA_SOFT_HOST") && !is_set("RDMA_SOFT_FABRIC") {
        let summary = "a host is chosen of a software fabric without a name, which is each process's own";
        let remedy = "to meet other processes, set RDMA_SOFT_FABRIC to the same name for all of them";
        all.push(Finding::warning(check, summary, remedy).on("RDMA_SOFT_HOST"));
    }
    all
}

/// The known name that is meant, if one is near, with or without the middle that most have.
fn nearest(name: &str) -> Option<&'static str> {
    let longer = name.replacen("RDMA_", "RDMA_SOFT_", 1);
    let changes = |known: &str| changes(name, known).min(changes(&longer, known));
    let (least, known) = KNOWN.into_iter().map(|known| (changes(known), known)).min()?;
    (least <= NEAR).then_some(known)
}

/// How many letters have to be changed, added, left out or swapped with the next one to make one word the other.
fn changes(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    // For the beginnings of `one`: how far each beginning of `other` is from it.
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

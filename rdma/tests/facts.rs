//! docs/device.md and the tests agree: each fact of the table names tests that exist, in words that the page explains, and
//! no test of the device is without a fact.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const EVIDENCE: [&str; 5] = ["documented", "shipping", "measured", "inferred", "ours"];
const PROFILES: [&str; 4] = ["thunderbolt", "thunderbolt_27", "classic", "custom"];
const HEADING: [&str; 6] = ["id", "fact", "evidence", "source", "profile", "test"];

struct Fact {
    id: String,
    text: String,
    evidence: Vec<String>,
    source: String,
    profiles: Vec<String>,
    tests: Vec<String>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn page() -> String {
    fs::read_to_string(repository().join("docs/device.md")).unwrap()
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')).expect(line);
    inner.split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn list(cell: &str) -> Vec<String> {
    cell.split(", ").map(|word| word.trim_matches('`').to_owned()).collect()
}

/// The rows of all tables that have the heading of facts.
fn facts(page: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut within = false;
    for line in page.lines() {
        if !line.starts_with('|') {
            within = false;
            continue;
        }
        let cells = cells(line);
        if cells == HEADING {
            within = true;
        } else if within && !cells.iter().all(|cell| cell == "---") {
            let [id, text, evidence, source, profiles, tests] = &cells[..] else { panic!("six cells: {line}") };
            facts.push(Fact {
                id: id.clone(),
                text: text.clone(),
                evidence: list(evidence),
                source: source.clone(),
                profiles: list(profiles),
                tests: list(tests),
            });
        } else {
            assert!(!looks_like_an_id(&cells[0]), "a fact outside of the tables of facts: {line}");
        }
    }
    facts
}

fn looks_like_an_id(text: &str) -> bool {
    text.strip_prefix('F').is_some_and(|number| number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The test functions of a file: what follows a `#[test]`, possibly after other attributes.
fn tests_of(source: &str) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" {
            marked = true;
        } else if marked && let Some(rest) = line.strip_prefix("fn ") {
            tests.insert(rest.split(['(', '<']).next().unwrap().to_owned());
            marked = false;
        }
    }
    tests
}

/// The file of a test that is named `FILE.rs::NAME`, or `FILE.rs::MODULE::NAME`, and its name.
fn locate(test: &str) -> (PathBuf, &str) {
    let (file, name) = test.split_once("::").expect(test);
    let folder = if file.starts_with("src/") { "rdma" } else { "rdma/tests" };
    (repository().join(folder).join(file), name.rsplit("::").next().unwrap())
}

#[test]
fn every_fact_is_complete_and_tested() {
    let facts = facts(&page());
    assert!(facts.len() >= 70, "only {} facts were found", facts.len());
    let mut seen = BTreeSet::new();
    let mut files = BTreeMap::new();
    for Fact { id, text, evidence, source, profiles, tests } in &facts {
        assert!(looks_like_an_id(id), "{id} is no id");
        assert!(seen.insert(id), "{id} twice");
        assert!(!text.is_empty() && !source.is_empty(), "{id}");
        for word in evidence {
            assert!(EVIDENCE.contains(&word.as_str()), "{id}: `{word}` is no kind of evidence");
        }
        for word in profiles {
            assert!(PROFILES.contains(&word.as_str()), "{id}: `{word}` is no profile");
        }
        // Somebody must have seen what was seen; what nobody did needs no source.
        let unseen = evidence.iter().all(|word| word == "inferred" || word == "ours");
        assert!(unseen || source != "–", "{id}: who says so?");
        for test in tests {
            let (path, name) = locate(test);
            let known = files.entry(path.clone()).or_insert_with(|| {
                tests_of(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{id}: {}: {error}", path.display())))
            });
            assert!(known.contains(name), "{id}: {} has no test `{name}`", path.display());
        }
    }
}

/// The first program of a page.
fn program(page: &str) -> String {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let (_, rest) = text.split_once("```rust\n").unwrap_or_else(|| panic!("{page} has no program"));
    rest.split("```").next().unwrap().to_owned()
}

/// The package's README is run with the documentation tests (`rdma/src/lib.rs`).
#[test]
fn the_programs_of_both_readmes_are_one() {
    let packaged = program("rdma/README.md");
    assert!(packaged.contains("fn main()"));
    assert_eq!(packaged, program("README.md"));
}

#[test]
fn the_words_are_explained() {
    let page = page();
    for word in EVIDENCE {
        let rows = page.lines().filter(|line| line.starts_with(&format!("| {word} |"))).count();
        assert_eq!(rows, 1, "{word}");
    }
    for profile in facts(&page).iter().flat_map(|fact| &fact.profiles).collect::<BTreeSet<_>>() {
        assert!(page.contains(&format!("`{profile}` is ")), "{profile} is not explained");
    }
}

#[test]
fn every_test_of_the_device_has_a_fact() {
    let named: BTreeSet<_> = facts(&page()).into_iter().flat_map(|fact| fact.tests).collect();
    let mut count = 0;
    for folder in ["device", "profiles", "faults"] {
        for entry in fs::read_dir(repository().join("rdma/tests").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            for test in tests_of(&fs::read_to_string(&path).unwrap()) {
                let test = format!("{folder}/{file}::{test}");
                assert!(named.contains(&test), "docs/device.md has no fact for {test}");
                count += 1;
            }
        }
    }
    assert!(count >= 60, "only {count} tests were found");
}

/// The words between quotation marks that are ids, in all sources of the example.
fn ids_of_the_example(folder: &Path, ids: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            ids_of_the_example(&path, ids);
        } else {
            let source = fs::read_to_string(&path).unwrap();
            ids.extend(
                source.split('"').filter(|word| looks_like_an_id(word) || is_a_question(word)).map(str::to_owned),
            );
        }
    }
}

fn is_a_question(text: &str) -> bool {
    text.strip_prefix('Q').is_some_and(|number| number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn the_example_asks_for_facts_and_questions_that_there_are() {
    let page = page();
    let facts: BTreeSet<_> = facts(&page).into_iter().map(|fact| fact.id).collect();
    let questions: BTreeSet<_> =
        page.lines().filter(|line| line.starts_with("| Q")).map(|line| cells(line)[0].clone()).collect();
    let mut asked = BTreeSet::new();
    ids_of_the_example(&repository().join("examples/conformance"), &mut asked);
    for id in &asked {
        assert!(facts.contains(id) || questions.contains(id), "docs/device.md does not have {id}");
    }
    assert!(questions.is_subset(&asked), "{questions:?} are not all asked");
    assert!(asked.intersection(&facts).count() >= 25, "few facts are asked for: {asked:?}");
}

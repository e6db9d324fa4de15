//! What must not compile: the patterns by which safe code breaks other libraries (P1 to P15; see docs/safety.md), and the
//! field's cases of the same kind.

use std::process::Command;

/// The compiler whose messages stand beside the cases. Another one words them differently, and the comparison would fail
/// for that reason alone; CI runs this one.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn misuse_does_not_compile() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("the compiler that built this test");
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.starts_with(COMPILER) {
        eprintln!("skipped: the expected messages are those of {COMPILER}x, this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}

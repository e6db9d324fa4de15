//! Looking a verbs library up: what is refused, what is said about it, and what the environment changes.
//!
//! The libraries are made here, from the table of calls itself, with the system's C compiler.

mod support;

use rdma_sys::{Attempt, LIBRARY_VARIABLE, LoadError, Verbs, ibv_wc_status};
use std::ffi::{CStr, OsStr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;
use support::calls::{Call, calls};
use support::{Compiler, HEADER, Scratch, skip};

/// Set in the processes that a test starts of itself: variables of a process with threads are not to be changed.
const CHILD: &str = "RDMA_SYS_TEST_CHILD";

/// Compiles a library with these calls. Each answers with its place in the table, as a number or a pointer.
fn library(compiler: &Compiler, scratch: &Scratch, name: &str, has: impl Fn(&Call) -> bool, more: &str) -> PathBuf {
    let mut text = format!("#include \"thunderbolt_verbs.h\"\n{more}\n");
    for (index, call) in calls().iter().enumerate().filter(|(_, call)| has(call)) {
        let arguments = call.arguments.iter().enumerate().map(|(number, argument)| format!("{argument} a{number}"));
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        let arguments = if arguments.is_empty() { "void" } else { &arguments };
        let body = match call.returned.as_str() {
            "void" => String::new(),
            "const char *" => format!("return \"{}\";", call.symbol),
            returned => format!("return ({returned})(uintptr_t){index};"),
        };
        text += &format!("{} {}({arguments}) {{ {body} }}\n", call.returned, call.symbol);
    }
    scratch.write("thunderbolt_verbs.h", HEADER);
    let source = scratch.write(&format!("{name}.c"), &text);
    match compiler.compile(&source, &format!("{name}.so"), &["-shared", "-fPIC"]) {
        Ok(library) => library,
        Err(diagnostics) => panic!("{diagnostics}\n{text}"),
    }
}

fn load(path: &Path) -> Result<Verbs, LoadError> {
    // SAFETY: the files of this test are no libraries, or ones that were made above out of our own header, without
    // initialisers.
    unsafe { Verbs::load(path) }
}

fn not_found(path: &Path) -> Attempt {
    match load(path) {
        Err(LoadError::NotFound { tried }) if tried.len() == 1 => tried[0].clone(),
        other => panic!("{}: {other:?}", path.display()),
    }
}

#[test]
fn what_is_no_library_is_not_found_and_the_reason_is_told() {
    let scratch = Scratch::new();
    let text = scratch.write("text.so", "This is not a library.\n");
    let absent = text.with_file_name("absent.so");
    let (text_said, absent_said) = (not_found(&text), not_found(&absent));
    assert_eq!(text_said.path, text);
    assert_eq!(absent_said.path, absent);
    // The words are the platform's, but they tell the two apart.
    let reason = |said: &Attempt| said.reason.replace(&said.path.display().to_string(), "");
    assert_ne!(reason(&text_said), reason(&absent_said));
    for said in [text_said, absent_said] {
        assert!(said.reason.len() > 10, "{said:?}");
        let error = LoadError::NotFound { tried: vec![said.clone()] };
        assert_eq!(error.to_string(), format!("no verbs library: tried {} ({})", said.path.display(), said.reason));
        // glibc begins with the file's name, which the attempt has already.
        assert!(!said.reason.starts_with(&*said.path.to_string_lossy()), "{said:?}");
    }
}

#[test]
fn paths_that_name_no_file_are_errors() {
    assert_eq!(not_found(Path::new("")).reason, "an empty path");
    assert!(!not_found(Path::new("a\0b")).reason.is_empty());
    assert!(!not_found(&std::env::temp_dir()).reason.is_empty());
}

#[test]
fn each_required_call_is_missed_by_name() {
    let scratch = Scratch::new();
    let Some(compiler) = Compiler::find("libraries that lack a required call", &scratch) else { return };
    for (number, missing) in Verbs::REQUIRED.iter().enumerate() {
        let name = format!("lacks{number}");
        let path = library(&compiler, &scratch, &name, |call| call.symbol != *missing, "");
        let error = load(&path).expect_err(missing);
        assert_eq!(error, LoadError::MissingSymbol { path: path.clone(), symbol: missing });
        let path = path.display();
        assert_eq!(error.to_string(), format!("{path} is not a usable verbs library: it has no symbol {missing}"));
    }
}

#[test]
fn optional_calls_may_be_missing() {
    let scratch = Scratch::new();
    let Some(compiler) = Compiler::find("libraries that lack optional calls", &scratch) else { return };
    // The fields are counted by their debug form: a list of them here would be one more to keep.
    let absent = |verbs: &Verbs| format!("{verbs:?}").matches("None").count();

    let whole = load(&library(&compiler, &scratch, "whole", |_| true, "")).expect("a whole library");
    assert_eq!(absent(&whole), 0);
    let bare = load(&library(&compiler, &scratch, "bare", |call| call.required, "")).expect("the required calls");
    assert_eq!(absent(&bare), Verbs::OPTIONAL.len());
    let most = |call: &Call| call.symbol != "ibv_wc_status_str";
    let most = load(&library(&compiler, &scratch, "most", most, "")).expect("all but one call");
    assert_eq!(absent(&most), 1);
    assert!(most.wc_status_str.is_none());

    // Two libraries at once: each table leads into its own, and each entry to the call of its name.
    let place = |symbol| calls().iter().position(|call| call.symbol == symbol).expect("a call of the table");
    for verbs in [&whole, &bare] {
        // SAFETY: these functions, made above, look at none of their arguments.
        unsafe {
            assert_eq!((verbs.destroy_qp)(null_mut()) as usize, place("ibv_destroy_qp"));
            assert_eq!((verbs.reg_mr)(null_mut(), null_mut(), 0, 0).addr(), place("ibv_reg_mr"));
            assert_eq!(CStr::from_ptr((verbs.get_device_name)(null_mut())), c"ibv_get_device_name");
        }
    }
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(whole.wc_status_str.expect("present")(ibv_wc_status::IBV_WC_SUCCESS)) };
    assert_eq!(text, c"ibv_wc_status_str");
}

/// A symbol can be there and be null. A null function pointer must not come of it.
#[test]
#[cfg(target_os = "linux")]
fn a_null_symbol_counts_as_missing() {
    let scratch = Scratch::new();
    let Some(compiler) = Compiler::find("libraries with a null symbol", &scratch) else { return };
    let null = |symbol: &str| format!("__asm__(\".globl {symbol}\\n.set {symbol}, 0\");");
    let without = |missing: &'static str| move |call: &Call| call.symbol != missing;

    let optional = "ibv_fork_init";
    let path = library(&compiler, &scratch, "optional", without(optional), &null(optional));
    assert!(load(&path).expect("an optional null").fork_init.is_none());
    let needed = "ibv_close_device";
    let path = library(&compiler, &scratch, "needed", without(needed), &null(needed));
    assert_eq!(load(&path).expect_err("a required null"), LoadError::MissingSymbol { path, symbol: needed });
}

/// What [`Verbs::system`] answers in a process of its own, which runs the test `name` again.
fn system_in_child(name: &str, chosen: Option<&OsStr>) -> String {
    let mut child = Command::new(std::env::current_exe().expect("the path of this test"));
    child.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1").env_remove(LIBRARY_VARIABLE);
    chosen.map(|path| child.env(LIBRARY_VARIABLE, path));
    let output = child.output().expect("run this test again");
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let (_, answer) = stdout.split_once("answer: ").expect("the child answers");
    answer.lines().next().unwrap_or_default().to_owned()
}

/// In the child: answers, and returns true.
fn answered() -> bool {
    if std::env::var_os(CHILD).is_none() {
        return false;
    }
    match Verbs::system() {
        Ok(verbs) => {
            let text = verbs.wc_status_str.map(|call| {
                // SAFETY: any status is a valid argument, and the text is a constant of the library.
                unsafe { CStr::from_ptr(call(ibv_wc_status::IBV_WC_SUCCESS)) }
            });
            println!("answer: loaded, {text:?}");
        }
        Err(error) => println!("answer: {error}"),
    }
    true
}

#[test]
fn the_variable_names_the_only_file_that_is_tried() {
    if answered() {
        return;
    }
    let scratch = Scratch::new();
    let ask = |path: &Path| system_in_child("the_variable_names_the_only_file_that_is_tried", Some(path.as_os_str()));
    // Only the one attempt, in the words that loading this very file gives.
    let text = scratch.write("text.so", "This is not a library.\n");
    for bad in [text.with_file_name("absent.so"), text] {
        assert_eq!(ask(&bad), format!("no verbs library: tried {}", not_found(&bad)));
    }
    let Some(compiler) = Compiler::find("RDMA_LIBRARY with a library", &scratch) else { return };
    let good = library(&compiler, &scratch, "good", |_| true, "");
    assert_eq!(ask(&good), "loaded, Some(\"ibv_wc_status_str\")");
    let lacking = library(&compiler, &scratch, "lacking", |call| call.symbol != "ibv_reg_mr", "");
    let expected = format!("{} is not a usable verbs library: it has no symbol ibv_reg_mr", lacking.display());
    assert_eq!(ask(&lacking), expected);
}

/// With the variable unset or empty it is the platform's library; on most machines there is none, and that is a value.
#[test]
fn the_platform_library_is_found_or_its_absence_is_told() {
    const NAME: &str = "the_platform_library_is_found_or_its_absence_is_told";
    if answered() {
        return;
    }
    let answer = system_in_child(NAME, None);
    assert_eq!(system_in_child(NAME, Some(OsStr::new(""))), answer);
    let names: &[&str] =
        if cfg!(target_os = "macos") { &["/usr/lib/librdma.dylib", "librdma.dylib"] } else { &["libibverbs.so.1"] };
    if answer.starts_with("no verbs library: tried ") {
        assert!(names.iter().all(|name| answer.contains(&format!("{name} ("))), "{answer}");
        skip("the platform's verbs library", &answer);
    } else {
        assert!(["loaded, Some(\"success\")", "loaded, None"].contains(&answer.as_str()), "{answer}");
    }
}

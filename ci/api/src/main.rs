//! Prints the public API that a file of rustdoc's JSON describes: one item a line.
//!
//! Left out is what the compiler adds by itself (implementations of `Send`, `UnwindSafe`, `From<T> for T` and the like):
//! it is the same for every type or a test's business (`rdma/tests/safe/traits.rs`), and it changes with the compiler.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: api RUSTDOC_JSON");
        return ExitCode::from(2);
    };
    let api = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build();
    match api {
        Ok(api) => {
            api.items().for_each(|item| println!("{item}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("api: {error}");
            ExitCode::FAILURE
        }
    }
}

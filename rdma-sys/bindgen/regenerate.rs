//! Writes `src/bindings.rs` from `include/thunderbolt_verbs.h`; with `--check`, only compares.
//!
//! ```text
//! cargo run -p thunderbolt-rdma-sys --features bindgen --example regenerate-bindings [-- --check]
//! ```
//!
//! This needs libclang. Building the crate does not: the generated file is committed.

use std::path::Path;
use std::process::ExitCode;

fn generate(header: &Path) -> Result<String, bindgen::BindgenError> {
    let bindings = bindgen::Builder::default()
        .header(header.to_string_lossy())
        .use_core()
        .rust_target(bindgen::RustTarget::stable(85, 0).expect("a known Rust release"))
        .rust_edition(bindgen::RustEdition::Edition2024)
        .allowlist_type("ibv_.*")
        .allowlist_var("IBV_.*")
        // C enums are integers that may hold values we have never heard of: newtypes, not Rust enums.
        .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: false })
        // Flag sets are constants here and bitflags types in src/flags.rs.
        .constified_enum("ibv_(access|send|wc)_flags|ibv_qp_attr_mask")
        .prepend_enum_name(false)
        // Objects of the library are prefixes: never copied, never made here.
        .no_copy("ibv_(context|pd|mr|cq|qp|comp_channel)")
        .no_default("ibv_(device|context|pd|mr|cq|qp|comp_channel)")
        .derive_default(true)
        // Layout is asserted by src/abi.rs, with the evidence for each number.
        .layout_tests(false)
        .formatter(bindgen::Formatter::Prettyplease)
        .disable_header_comment()
        .raw_line("// Generated from include/thunderbolt_verbs.h by bindgen/regenerate.rs. Do not edit.")
        .generate()?;
    Ok(bindings.to_string())
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = root.join("include/thunderbolt_verbs.h");
    let target = root.join("src/bindings.rs");
    let check = std::env::args().skip(1).any(|argument| argument == "--check");
    let fresh = match generate(&header) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("bindgen failed on {}: {error}", header.display());
            return ExitCode::FAILURE;
        }
    };
    if check {
        let committed = std::fs::read_to_string(&target).unwrap_or_default();
        if committed == fresh {
            println!("{} is what bindgen makes of {}", target.display(), header.display());
            return ExitCode::SUCCESS;
        }
        eprintln!(
            "{} differs from what bindgen makes of {}: run this without --check",
            target.display(),
            header.display()
        );
        return ExitCode::FAILURE;
    }
    if let Err(error) = std::fs::write(&target, fresh) {
        eprintln!("cannot write {}: {error}", target.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

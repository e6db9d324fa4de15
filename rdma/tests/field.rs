//! Cases from the field: what went wrong for people who do this, each as the test that would have caught it. The numbers are
//! those of docs/field-cases.md, which tells the stories and where they are from.
#![allow(unsafe_code)]

mod support;

mod field {
    mod a_thunderbolt;
    mod a_thunderbolt_limits;
    mod b_rust;
    mod b_rust_completions;
    mod c_verbs;
    mod c_verbs_setup;
    mod d_emulation;
}

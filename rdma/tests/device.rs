//! The software device's facts, through its function table: what a C program sees. One file a subject.
#![allow(unsafe_code)]

mod support;

mod device {
    mod attributes;
    mod depth;
    mod fences;
    mod handles;
    mod limits;
    mod matching;
    mod memory;
    mod overrun;
    mod posting;
    mod states;
}

//! What the software device does under other profiles than macOS 26's, through its function table.

#![allow(unsafe_code)]

mod support;

mod profiles {
    mod classic;
    mod custom;
    mod macos_27;
}

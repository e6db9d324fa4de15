//! A fabric between processes: messages, autonomy, death, hostile neighbours, hygiene.

mod shared {
    mod autonomy;
    mod death;
    mod end;
    mod faults;
    mod hostile;
    mod joining;
    mod limits;
    mod messages;
    mod process;
}
#[allow(unused_imports)]
mod support;

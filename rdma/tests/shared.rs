//! A fabric between processes: messages, autonomy, death, hostile neighbours, hygiene.

mod shared {
    mod autonomy;
    mod churn;
    mod death;
    mod end;
    mod faults;
    mod forking;
    mod gate;
    mod hostile;
    mod joining;
    mod leaving;
    mod limits;
    mod messages;
    mod process;
    mod reconnect;
}
#[allow(unused_imports)]
mod support;

//! What may cross threads, as the compiler sees it.

use rdma::{
    Buffer, Completion, CompletionQueue, Context, Device, Error, Failure, FrozenBuffer, MemoryRegion, Port,
    PreparedQueuePair, ProtectionDomain, Provider, QueuePair, SharedBuffer, SharedRegion, Transfer,
};

fn send<T: Send>() {}
fn sync<T: Sync>() {}

/// A type is not `Trait` if this compiles: two implementations would be ambiguous otherwise.
macro_rules! is_not {
    ($type:ty: $trait:ident) => {
        const _: fn() = || {
            trait Ambiguous<A> {
                fn some() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Marker;
            impl<T: ?Sized + $trait> Ambiguous<Marker> for T {}
            let _ = <$type as Ambiguous<_>>::some;
        };
    };
}

is_not!(QueuePair: Sync);
is_not!(CompletionQueue: Sync);
is_not!(PreparedQueuePair: Sync);
is_not!(Buffer: Clone);
is_not!(SharedBuffer: Clone);
is_not!(QueuePair: Clone);
is_not!(CompletionQueue: Clone);
is_not!(Completion: Clone);

#[test]
fn what_may_move_and_what_may_be_shared() {
    send::<QueuePair>();
    send::<CompletionQueue>();
    send::<PreparedQueuePair>();
    send::<Completion>();
    send::<Transfer>();
    send::<Failure>();
    send::<Error>();
    sync::<Error>();
    macro_rules! both {
        ($($type:ty)*) => { $( send::<$type>(); sync::<$type>(); )* };
    }
    both!(Provider Device Context Port ProtectionDomain MemoryRegion SharedRegion Buffer FrozenBuffer SharedBuffer);
}

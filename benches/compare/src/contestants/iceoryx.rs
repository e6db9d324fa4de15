//! iceoryx2: a service each way. A message is copied into a sample that was lent, or written there if it is new,
//! and read where it is.

use crate::Result;
use crate::play::{End, touch, wait};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{LogLevel, NodeBuilder, ServiceName, ipc, set_log_level};

pub(crate) struct IceoryxEnd {
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    message: Vec<u8>,
    /// What to write in place instead of the message.
    fresh: Option<u8>,
}

impl IceoryxEnd {
    pub(crate) fn new(name: &str, side: usize, size: usize) -> Result<Self> {
        set_log_level(LogLevel::Error);
        let node = NodeBuilder::new().create::<ipc::Service>().map_err(told)?;
        let service = |side: usize| {
            let name: ServiceName = format!("{name}/{side}").as_str().try_into().map_err(told)?;
            let builder = node.service_builder(&name).publish_subscribe::<[u8]>();
            builder.subscriber_max_buffer_size(2).open_or_create().map_err(told)
        };
        let publisher = service(side)?.publisher_builder().initial_max_slice_len(size).create().map_err(told)?;
        let subscriber = service(1 - side)?.subscriber_builder().create().map_err(told)?;
        Ok(IceoryxEnd { publisher, subscriber, message: vec![1; size], fresh: None })
    }
}

/// Its errors are not all `Send`.
fn told(error: impl std::fmt::Debug) -> crate::Error {
    format!("iceoryx2: {error:?}").into()
}

impl End for IceoryxEnd {
    #[inline]
    fn rewrite(&mut self, value: u8) -> Result<()> {
        self.fresh = Some(value);
        Ok(())
    }

    #[inline]
    fn send(&mut self) -> Result<()> {
        let sample = self.publisher.loan_slice_uninit(self.message.len()).map_err(told)?;
        let sample = match self.fresh {
            None => sample.write_from_slice(&self.message),
            Some(value) => sample.write_from_fn(|_| value),
        };
        sample.send().map_err(told)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<()> {
        let sample = wait(|| self.subscriber.receive().map_err(told))?;
        touch(sample.payload());
        Ok(())
    }
}

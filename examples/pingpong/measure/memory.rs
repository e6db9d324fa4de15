use super::message;
use super::plan::Plan;
use super::stop::Stop;
use rdma::{Buffer, Context, MemoryRegion, ProtectionDomain};

/// All memory that a run needs, registered at once: a device does not know what is registered after a queue pair was
/// connected.
#[derive(Debug)]
pub(crate) struct Memory {
    regions: Vec<MemoryRegion>,
}

/// Buffers begin at multiples of this many bytes in their region.
const GRAIN: usize = 128;

/// Buffers for the messages of [`message`].
pub(crate) const OWN_BUFFERS: usize = 4;

impl Memory {
    /// Memory for the size of a plan that needs the most.
    pub(crate) fn register(domain: &ProtectionDomain, context: &Context, plan: &Plan) -> Result<Self, Stop> {
        let need = |size: usize| {
            let count = plan.messages(size) + plan.window(size);
            (count, size.next_multiple_of(GRAIN))
        };
        let (mut longest, mut total) = (0, 0);
        for (count, length) in plan.sizes().into_iter().map(need) {
            longest = longest.max(length);
            total = total.max(count * length);
        }
        total += OWN_BUFFERS * message::LENGTH.next_multiple_of(GRAIN);
        // One region is best; but macOS 27 enforces the length of a region that macOS 26 only reports (Aileuxe/MCDMA).
        let limit = usize::try_from(context.attributes().max_region_length()).unwrap_or(usize::MAX);
        if total <= limit {
            return Ok(Memory { regions: vec![domain.allocate(total)?] });
        }
        let each = (limit / longest * longest).max(longest);
        let regions = (0..total.div_ceil(each) + 1).map(|_| domain.allocate(each)).collect::<Result<_, _>>()?;
        Ok(Memory { regions })
    }

    /// Some buffers of one length.
    pub(crate) fn buffers(&self, count: usize, length: usize) -> Result<Vec<Buffer>, Stop> {
        (0..count).map(|_| self.buffer(length)).collect()
    }

    pub(crate) fn buffer(&self, length: usize) -> Result<Buffer, Stop> {
        let mut last = None;
        for region in &self.regions {
            match region.buffer(length) {
                Ok(buffer) => return Ok(buffer),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| Stop::Impossible("there is no memory".to_owned()), Stop::Rdma))
    }
}

//! Where devices come from.

use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::verbs::library::Library;
use std::sync::Arc;

/// A verbs library, or a host of a software fabric that stands in for one.
///
/// Whichever it is, everything that follows is the same code.
///
/// ```
/// use rdma::{Provider, soft::Fabric};
///
/// // On a Mac (or a Linux machine with RDMA hardware) this is the installed library …
/// if let Err(error) = Provider::system() {
///     println!("no RDMA here: {error}");
/// }
/// // … and everywhere, a host of a fabric in software.
/// let fabric = Fabric::mesh(2)?;
/// let provider = Provider::soft(&fabric.host(0)?)?;
/// assert_eq!(provider.devices()?.len(), 1);
/// # Ok::<(), rdma::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Provider {
    library: Arc<Library>,
}

impl Provider {
    /// The environment variable that [`from_env`](Self::from_env) reads: `RDMA_PROVIDER`.
    pub const VARIABLE: &'static str = "RDMA_PROVIDER";

    /// The installed library: `/usr/lib/librdma.dylib` on macOS 26.2 and later, `libibverbs.so.1` on Linux, or the file
    /// that the variable `RDMA_LIBRARY` names (whoever sets it vouches for that file).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LibraryNotFound`] says which files were tried. Nothing is linked, so a program starts without it.
    pub fn system() -> Result<Self> {
        Ok(Provider { library: Library::system()? })
    }

    /// A host of a software fabric.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitReached`] if a thousand of them exist in this process.
    #[cfg(feature = "soft")]
    pub fn soft(host: &crate::soft::Host) -> Result<Self> {
        Ok(Provider { library: Library::soft(host)? })
    }

    /// What the variable `RDMA_PROVIDER` names: `system` (or not set) for [`Provider::system`], `soft` for a host of a
    /// software fabric as described in [`soft`](crate::soft).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for another value, and those of the two.
    pub fn from_env() -> Result<Self> {
        match std::env::var(Self::VARIABLE).as_deref() {
            Err(std::env::VarError::NotPresent) | Ok("" | "system") => Provider::system(),
            #[cfg(feature = "soft")]
            Ok("soft") => Provider::soft(&crate::soft::environment::host(crate::soft::environment::PAGE)?),
            #[cfg(not(feature = "soft"))]
            Ok("soft") => {
                Err(Error::new(ErrorKind::Unsupported, "RDMA_PROVIDER is soft, but this program was built without it")
                    .with_hint("enable the feature `soft` of the crate thunderbolt-rdma"))
            }
            other => Err(Error::new(ErrorKind::InvalidArgument, format!("RDMA_PROVIDER is {other:?}"))
                .with_hint("it is `system` or `soft`")),
        }
    }

    pub(crate) fn new(library: Arc<Library>) -> Self {
        Provider { library }
    }

    /// The function table.
    #[doc(hidden)]
    pub fn verbs(&self) -> &rdma_sys::Verbs {
        &self.library.verbs
    }

    /// The devices, in the library's order, which on Macs is not that of their numbers. Empty where RDMA is not enabled or
    /// the hardware has none: [`device`](Self::device) makes an error of that.
    ///
    /// # Errors
    ///
    /// What `ibv_get_device_list` reports.
    #[doc(alias = "ibv_get_device_list")]
    pub fn devices(&self) -> Result<Vec<Device>> {
        Ok(self.library.devices()?.into_iter().map(Device::new).collect())
    }

    /// The device of this name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoDevices`] if there is none at all, [`ErrorKind::UnknownDevice`] (which lists those there are) if
    /// none has the name.
    pub fn device(&self, name: &str) -> Result<Device> {
        let devices = self.devices()?;
        if devices.is_empty() {
            return Err(no_devices());
        }
        let names: Vec<_> = devices.iter().map(|device| device.name().to_owned()).collect();
        devices.into_iter().find(|device| device.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::UnknownDevice, format!("there is no device {name}: there is {}", names.join(", ")))
        })
    }

    /// The first device whose first port is ACTIVE.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoDevices`] if there is none, [`ErrorKind::PortDown`] if all are down.
    pub fn first_active(&self) -> Result<Device> {
        let devices = self.devices()?;
        if devices.is_empty() {
            return Err(no_devices());
        }
        let names: Vec<_> = devices.iter().map(|device| device.name().to_owned()).collect();
        for device in devices {
            if device.open().and_then(|context| context.port(1)).is_ok_and(|port| port.is_active()) {
                return Ok(device);
            }
        }
        Err(Error::new(ErrorKind::PortDown, format!("no port is ACTIVE, of {}", names.join(", ")))
            .with_hint("check the cable, and that RDMA is enabled on both ends"))
    }
}

fn no_devices() -> Error {
    let hint = if cfg!(target_os = "macos") {
        "RDMA over Thunderbolt needs Thunderbolt 5 on both ends (enabling it on an older Mac changes nothing) and is switched \
         on in Recovery with `rdma_ctl enable`"
    } else {
        "there is no RDMA hardware here: RDMA_PROVIDER=soft runs on the software device"
    };
    Error::new(ErrorKind::NoDevices, "the verbs library lists no devices").with_hint(hint)
}

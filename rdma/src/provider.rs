//! Where devices come from.

use crate::device::Device;
use crate::error::catalogue::{System, states};
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

    /// The provider of this name, for a program's own option: `system` for [`Provider::system`], `soft` for a host of the
    /// software fabric that these variables describe, one a process, made or joined at the first call:
    ///
    /// | variable | what it is | if not set |
    /// |---|---|---|
    /// | `RDMA_SOFT_FABRIC` | the fabric's name: processes that say the same one are on one fabric | this process alone |
    /// | `RDMA_SOFT_TOPOLOGY` | its shape: `mesh:N` or `ring:N`, of N hosts, or `file:PATH` | `mesh:2` |
    /// | `RDMA_SOFT_HOST` | which of its hosts this process is, from 0 | `0` |
    /// | `RDMA_SOFT_PROFILE` | the rules of its devices, as [`Profile`](crate::soft::Profile) reads them | `thunderbolt` |
    /// | `RDMA_SOFT_FAULTS` | what goes wrong, as [`Faults`](crate::soft::Faults) reads it, or `file:PATH` | nothing |
    /// | `RDMA_SOFT_PAGE` | the page of its devices, in bytes: what memory is aligned to | `16384`, as on Apple silicon |
    /// | `RDMA_SOFT_DIRECTORY` | where the memory of a fabric with a name is | `/dev/shm`, or the folder for temporary files |
    ///
    /// Other names that begin so are errors, because they are misspelt.
    ///
    /// A name loads no file of its own choice: running a file's code is [`unsafe`](Provider::library), or for whoever sets
    /// `RDMA_LIBRARY` to vouch for. Names that begin with `library:` stay unused, so that a program can give them that
    /// meaning.
    ///
    /// ```
    /// # use rdma::{ErrorKind, Provider};
    /// let provider = Provider::named("soft")?;
    /// assert_eq!(provider.first_active()?.name(), "rdma_en2");
    /// assert_eq!(Provider::named("hard").unwrap_err().kind(), ErrorKind::InvalidArgument);
    /// # Ok::<(), rdma::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for another name or a variable that makes no sense, [`ErrorKind::Unsupported`] if the
    /// program was built without the feature `soft`, and those of the two.
    pub fn named(name: &str) -> Result<Self> {
        Provider::find(name).unwrap_or_else(|| Err(unknown(format!("there is no provider `{name}`"), name)))
    }

    /// The provider that the variable `RDMA_PROVIDER` [names](Self::named): `system` if it is empty or not set.
    ///
    /// # Errors
    ///
    /// As for [`named`](Self::named).
    pub fn from_env() -> Result<Self> {
        let value = std::env::var_os(Self::VARIABLE).filter(|value| !value.is_empty());
        let Some(value) = value else { return Provider::system() };
        let name = value.to_string_lossy();
        Provider::find(&name)
            .unwrap_or_else(|| Err(unknown(format!("{} is `{name}`, which is no provider", Self::VARIABLE), &name)))
    }

    /// `None`: nobody has that name.
    fn find(name: &str) -> Option<Result<Self>> {
        match name {
            "system" => Some(Provider::system()),
            #[cfg(feature = "soft")]
            "soft" => Some(crate::soft::environment::host(None).and_then(|host| Provider::soft(&host))),
            #[cfg(not(feature = "soft"))]
            "soft" => {
                Some(Err(Error::new(ErrorKind::Unsupported, "this program was built without the software fabric")
                    .with_hint("enable the feature `soft` of the crate thunderbolt-rdma")))
            }
            _ => None,
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
    /// [`ErrorKind::NoDevices`] if there is none, [`ErrorKind::PortDown`] if all are down; if none could even be asked, why
    /// the first could not.
    pub fn first_active(&self) -> Result<Device> {
        let devices = self.devices()?;
        if devices.is_empty() {
            return Err(no_devices());
        }
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for device in devices {
            match device.open().and_then(|context| context.port(1)) {
                Ok(port) if port.is_active() => return Ok(device),
                Ok(port) => found.push(format!("{} is {}", device.name(), port.state())),
                Err(error) => failed.push(error),
            }
        }
        if found.is_empty() {
            return Err(failed.swap_remove(0));
        }
        found.extend(failed.iter().map(Error::to_string));
        Err(Error::known(&states::PORT_DOWN, format!("no port is ACTIVE: {}", found.join(", "))))
    }
}

fn unknown(detail: String, name: &str) -> Error {
    Error::argument(detail).with_hint(match name.starts_with("library:") {
        true => "for a file of your own, take `system` and set RDMA_LIBRARY to its path",
        false => "it is `system` or `soft`",
    })
}

fn no_devices() -> Error {
    Error::known(states::no_devices(System::HERE), "the verbs library lists no devices")
}

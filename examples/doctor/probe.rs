//! Asks the verbs library, and nothing that takes anything of a device: its devices, their ports and addresses.

use crate::parse::library::{Device, Library, Port};
use rdma::{ErrorKind, Provider};

/// Asks the installed library, or the one that `RDMA_LIBRARY` names.
pub(crate) fn library() -> Library {
    let provider = match Provider::system() {
        Ok(provider) => provider,
        Err(error) => return Library::Missing(error.to_string()),
    };
    match provider.devices() {
        Ok(devices) => Library::Devices(devices.iter().map(device).collect()),
        Err(error) if error.kind() == ErrorKind::NoDevices => Library::Devices(Vec::new()),
        Err(error) => Library::Failed(error.to_string()),
    }
}

fn device(device: &rdma::Device) -> Device {
    let ports = || -> rdma::Result<_> {
        let context = device.open()?;
        (1..=context.attributes().ports()).map(|number| port(&context.port(number)?)).collect()
    };
    Device {
        name: device.name().to_owned(),
        transport: device.transport().raw(),
        ports: ports().map_err(|error| error.to_string()),
    }
}

fn port(port: &rdma::Port) -> rdma::Result<Port> {
    Ok(Port {
        number: port.number(),
        state: port.state().to_string(),
        active: port.is_active(),
        gids: port.gids()?.iter().map(|entry| entry.to_string()).collect(),
    })
}

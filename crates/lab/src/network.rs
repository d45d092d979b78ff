//! Network between two guests: a socket of this machine that joins their devices, and the addresses in the guests.

use super::directories;
use punctual_model::{Cell, Link};
use punctual_sys::boot;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::{Duration, Instant};

/// The network of both addresses.
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// Name of the device in a guest, as the kernel gives it.
const DEVICE: &std::ffi::CStr = c"eth0";
/// Timeout for the device to appear after its driver was loaded.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Reason why guests cannot exchange datagrams over `link`; `None` when they can, and for other links.
pub(super) fn why_not(link: Link) -> Option<String> {
    let Link::Udp(place) = link else { return None };
    address(place.as_str()).is_none().then(|| {
        let text = place.as_str();
        format!(
            "invalid address `{text}` of a guest: expected an IPv4 address and a port, like response:udp:10.0.0.1:7000"
        )
    })
}

/// An address that has a neighbor in its network.
fn address(place: &str) -> Option<Ipv4Addr> {
    let address = *place.parse::<SocketAddrV4>().ok()?.ip();
    let [.., last] = address.octets();
    ((1..=254).contains(&last) && !address.is_loopback() && !address.is_multicast()).then_some(address)
}

/// The addresses of the responder and of the measuring guest, if they exchange datagrams.
pub(super) fn addresses(cell: &Cell) -> Option<[Ipv4Addr; 2]> {
    let Some(Link::Udp(place)) = cell.task.link() else { return None };
    let target = address(place.as_str())?;
    let [a, b, c, last] = target.octets();
    Some([target, Ipv4Addr::new(a, b, c, if last == 254 { 253 } else { last + 1 })])
}

/// QEMU arguments of the end with `number` of the network that meets at `socket`; end 0 makes it.
pub(super) fn arguments(socket: &Path, number: u8) -> Vec<OsString> {
    let path = directories::as_value(socket);
    let server = if number == 0 { "on" } else { "off" };
    let network = format!("stream,id=net,server={server},addr.type=unix,addr.path={path}");
    // Without a boot ROM, which guests with a kernel do not use.
    let device = format!("virtio-net-pci,netdev=net,mac=52:54:00:00:00:0{},romfile=", number + 1);
    ["-netdev", &network, "-device", &device].map(OsString::from).into()
}

/// Gives the guest its address. Errors: if the kernel has no driver for the device.
pub(super) fn set_up(address: Ipv4Addr) -> io::Result<()> {
    let began = Instant::now();
    let failed = |err| io::Error::other(format!("cannot set up the network: {err}"));
    loop {
        match boot::set_address(DEVICE, address, MASK) {
            Ok(()) => return boot::bring_up(DEVICE).map_err(failed),
            Err(err) if err.raw_os_error() != Some(libc::ENODEV) => return Err(failed(err)),
            Err(_) if began.elapsed() > DEVICE_TIMEOUT => {
                let reason = "no network: the kernel needs virtio_pci and virtio_net, built in or as modules";
                return Err(io::Error::other(reason));
            }
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_have_addresses_of_one_network_or_the_plan_is_wrong() {
        for (place, neighbor) in [
            ("10.0.0.1:7000", Some([10, 0, 0, 2])),
            ("192.168.7.254:1", Some([192, 168, 7, 253])),
            ("10.0.0.0:7000", None),
            ("10.0.0.255:7000", None),
            ("127.0.0.1:7000", None),
            ("224.0.0.1:7000", None),
            ("board:7000", None),
            ("[::1]:7000", None),
        ] {
            let link: Link = format!("udp:{place}").parse().unwrap();
            assert_eq!(why_not(link).is_none(), neighbor.is_some(), "{place}");
            let Some(neighbor) = neighbor else { continue };
            let text = format!(
                "{{\"kernel\":\"running\",\"load\":\"none\",\"policy\":\"other\",\"period_ns\":1000000,\"method\":\"response:{link}\",\"cpus\":\"0\",\"duration_ns\":1000000000,\"deadline_ns\":null,\"lock_memory\":false,\"warm_up_ns\":0,\"timer_slack_ns\":null,\"cpu_dma_latency_us\":null}}"
            );
            let cell: Cell = serde_json::from_slice(text.as_bytes()).unwrap();
            assert_eq!(addresses(&cell).unwrap()[1].octets(), neighbor, "{place}");
        }
        assert_eq!(why_not("serial:/dev/ttyS2".parse().unwrap()), None);
    }

    #[test]
    fn a_comma_in_a_path_is_part_of_it() {
        assert!(
            arguments(Path::new("/a,b"), 0)[1].to_str().unwrap().ends_with("server=on,addr.type=unix,addr.path=/a,,b")
        );
    }
}

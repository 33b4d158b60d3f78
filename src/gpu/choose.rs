use std::sync::OnceLock;

use super::device::ready;
use crate::error::{Error, Result};

const INSTALL: &str = "install a Vulkan driver (for a CPU: Mesa's lavapipe, Debian packages libvulkan1 and \
                       mesa-vulkan-drivers)";

/// The one instance of the process. It is never dropped: drivers leave destructors in the threads that called them, and
/// would be unloaded before those threads end.
fn instance() -> &'static wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        descriptor.flags = wgpu::InstanceFlags::empty();
        wgpu::Instance::new(descriptor)
    })
}

fn adapters() -> Vec<wgpu::Adapter> {
    ready(instance().enumerate_adapters(wgpu::Backends::all()))
}

/// True when at least one adapter is there.
pub fn adapter_available() -> bool {
    !adapters().is_empty()
}

/// The adapter that `selector` names by index or by part of its name; without one, the most capable kind.
pub(super) fn adapter(selector: Option<&str>) -> Result<wgpu::Adapter> {
    let mut found = adapters();
    if found.is_empty() {
        return Err(Error::Device(format!("no GPU adapter found; {INSTALL}")));
    }
    let names: Vec<String> = found.iter().map(|a| a.get_info().name).collect();
    let index = match selector {
        None => found.iter().enumerate().min_by_key(|(_, a)| rank(a.get_info().device_type)).map(|(i, _)| i),
        Some(text) => match text.parse::<usize>() {
            // A number is an index and nothing else: most names have some digit.
            Ok(index) => Some(index).filter(|&index| index < found.len()),
            Err(_) => names.iter().position(|name| name.to_lowercase().contains(&text.to_lowercase())),
        },
    };
    match index {
        Some(index) => Ok(found.swap_remove(index)),
        None => Err(Error::Option(format!(
            "adapter {:?} is not there, found {}",
            selector.unwrap_or_default(),
            names.iter().enumerate().map(|(i, name)| format!("{i} \"{name}\"")).collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn rank(kind: wgpu::DeviceType) -> u32 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

use std::fmt;

/// What a device can do, as plain data: kernel selection depends on nothing else of the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Caps {
    /// f16 arithmetic and storage in shaders.
    pub f16: bool,
    /// Smallest and largest subgroup size; `None` when subgroup operations are missing.
    pub subgroup: Option<(u32, u32)>,
    /// Timestamp queries.
    pub timestamps: bool,
    /// A driver pipeline cache that can be saved.
    pub pipeline_cache: bool,
    /// Bytes of immediate data a pipeline can take; 0 when missing.
    pub immediate_bytes: u32,
    /// Cooperative matrix shapes (m, n, k) with f16 factors and the accumulator named.
    pub coop: Vec<CoopShape>,
    /// Largest range of a storage buffer that one binding covers, in bytes.
    pub max_binding: u64,
    /// Largest buffer, in bytes.
    pub max_buffer: u64,
    /// Storage buffers that one kernel can bind.
    pub max_storage_buffers: u32,
    /// Workgroup memory in bytes.
    pub shared_bytes: u32,
    /// Invocations of a workgroup.
    pub max_invocations: u32,
    /// Invocations of a workgroup along x.
    pub max_size_x: u32,
    /// Workgroups along one dimension.
    pub max_groups: u32,
    /// Alignment of a storage binding's offset, in bytes.
    pub storage_alignment: u32,
    /// Alignment of a uniform binding's offset, in bytes.
    pub uniform_alignment: u32,
}

/// One cooperative matrix product that the device offers: f16 factors, f32 or f16 accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoopShape {
    /// Rows of the product.
    pub m: u32,
    /// Columns of the product.
    pub n: u32,
    /// Length of the sum.
    pub k: u32,
    /// True when the accumulator is f16.
    pub f16_accumulate: bool,
}

impl Caps {
    /// WebGPU's guaranteed limits and no optional feature: what every device can do.
    pub fn minimal() -> Caps {
        Caps {
            f16: false,
            subgroup: None,
            timestamps: false,
            pipeline_cache: false,
            immediate_bytes: 0,
            coop: Vec::new(),
            max_binding: 128 << 20,
            max_buffer: 256 << 20,
            max_storage_buffers: 8,
            shared_bytes: 16 << 10,
            max_invocations: 256,
            max_size_x: 256,
            max_groups: 65535,
            storage_alignment: 256,
            uniform_alignment: 256,
        }
    }
}

impl fmt::Display for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |on: bool| if on { "yes" } else { "no" };
        write!(f, "f16 {}, subgroups ", yes(self.f16))?;
        match self.subgroup {
            Some((low, high)) if low == high => write!(f, "{low}")?,
            Some((low, high)) => write!(f, "{low}-{high}")?,
            None => write!(f, "no")?,
        }
        write!(
            f,
            ", cooperative matrix {}, immediates {} B, timestamps {}, pipeline cache {}, binding {} MiB, shared {} KiB",
            yes(!self.coop.is_empty()),
            self.immediate_bytes,
            yes(self.timestamps),
            yes(self.pipeline_cache),
            self.max_binding >> 20,
            self.shared_bytes >> 10
        )
    }
}

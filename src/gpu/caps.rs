use std::fmt;

/// What a device can do, as plain data: kernel selection depends on nothing else of the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Caps {
    /// f16 arithmetic and storage in shaders.
    pub f16: bool,
    /// Smallest and largest subgroup size; `None` when subgroup operations are missing.
    pub subgroup: Option<(u32, u32)>,
    /// Products of four bytes at once are fast.
    pub packed_dot: bool,
    /// The device is a CPU.
    pub cpu: bool,
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
    /// WebGPU's guaranteed limits, half of its invocations in a workgroup and no optional feature: what every device can do.
    pub fn minimal() -> Caps {
        Caps {
            f16: false,
            subgroup: None,
            packed_dot: false,
            cpu: false,
            timestamps: false,
            pipeline_cache: false,
            immediate_bytes: 0,
            coop: Vec::new(),
            max_binding: 128 << 20,
            max_buffer: 256 << 20,
            max_storage_buffers: 8,
            shared_bytes: 16 << 10,
            max_invocations: 128,
            max_size_x: 128,
            max_groups: 65535,
            storage_alignment: 256,
            uniform_alignment: 256,
        }
    }

    /// A large GPU: every feature that kernels know, and limits that no kernel reaches.
    pub fn full() -> Caps {
        let coop = |f16_accumulate| CoopShape { m: 16, n: 16, k: 16, f16_accumulate };
        Caps {
            f16: true,
            subgroup: Some((32, 32)),
            packed_dot: true,
            timestamps: true,
            pipeline_cache: true,
            immediate_bytes: 128,
            coop: vec![coop(false), coop(true)],
            max_binding: (4 << 30) - 4,
            max_buffer: 1 << 40,
            max_storage_buffers: 64,
            shared_bytes: 48 << 10,
            max_invocations: 1024,
            max_size_x: 1024,
            storage_alignment: 16,
            uniform_alignment: 64,
            ..Caps::minimal()
        }
    }

    /// Bytes of one buffer that one binding covers.
    pub fn binding(&self) -> u64 {
        self.max_binding.min(self.max_buffer)
    }

    /// How many rows of `row` bytes one binding covers, 0 for none: a multiple of the alignment where that many fit, so that
    /// a run of so many rows starts where a binding may in every tensor; else what only tensors of such rows can do with.
    pub fn rows_of_binding(&self, row: u64) -> u64 {
        let (most, any) = (self.binding() / row.max(1), u64::from(self.storage_alignment.max(16)));
        let own = (1..any).find(|n| (n * row).is_multiple_of(any)).unwrap_or(any);
        let rows = [any, own].map(|step| most / step * step);
        rows.into_iter().find(|&rows| rows > 0).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_covers_aligned_runs_of_rows() {
        let caps = Caps { max_binding: 1 << 16, max_buffer: 1 << 20, storage_alignment: 64, ..Caps::minimal() };
        for (row, rows) in [
            (48, 1344),
            (1, 65536),
            (1000, 64),
            (1024, 64),
            (2048, 32),
            (40_000, 1),
            (40_001, 0),
            (65_536, 1),
            (70_000, 0),
        ] {
            assert_eq!(caps.rows_of_binding(row), rows, "rows of {row} bytes");
        }
        assert_eq!(Caps { max_buffer: 1 << 12, ..caps }.rows_of_binding(16), 256);
    }
}

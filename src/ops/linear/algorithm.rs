//! The ways in which a matrix product can be computed, and what the choice among them depends on besides the device.

/// How one matrix product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A team of invocations per few columns, the sum split among them: for few rows and any weights.
    Gemv {
        /// Rows computed together: 1 or 4.
        rows: u32,
        /// Columns that a team computes together.
        columns: u32,
        /// Who shares one sum.
        team: Team,
    },
    /// 4-bit weights and few rows: activations stay in registers while columns stream by.
    GemvQ4(GemvQ4),
    /// 4-bit weights and few rows by cooperative matrices, the sum split among the subgroups of a workgroup.
    Thin {
        /// Rows of a tile: 16 or 32.
        rows: u32,
        /// Subgroups that share a sum.
        split: u32,
    },
    /// A tile of rows and columns per workgroup, multiplied in halves by cooperative matrices.
    Coop {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
        /// Parts into which the sum is cut, each with workgroups of its own.
        slices: u32,
    },
    /// A tile of rows and columns per workgroup, staged in shared memory.
    Tile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
}

/// The invocations that share one sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Team {
    /// `split` subgroups of `lanes` invocations.
    Subgroups {
        /// Subgroup size.
        lanes: u32,
        /// Subgroups of a team.
        split: u32,
    },
    /// The whole workgroup, where subgroups are missing or vary in size.
    Workgroup,
}

impl Algorithm {
    /// Rows and columns of the result that one workgroup, or one team, computes.
    pub fn tile(self) -> (u32, u32) {
        match self {
            Algorithm::Gemv { rows, columns, team } => (rows, columns * GEMV_WORKGROUP / team.size()),
            Algorithm::GemvQ4(GemvQ4 { rows, columns, blocks, .. }) => (rows, columns * blocks),
            Algorithm::Thin { rows, .. } => (rows, 16),
            Algorithm::Coop { rows, columns, .. } | Algorithm::Tile { rows, columns } => (rows, columns),
        }
    }
}

impl Team {
    /// Invocations of a team.
    pub(super) fn size(self) -> u32 {
        match self {
            Team::Subgroups { lanes, split } => lanes * split,
            Team::Workgroup => GEMV_WORKGROUP,
        }
    }
}

/// The shape of a [`Algorithm::GemvQ4`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemvQ4 {
    /// Rows computed together: 1, 2 or 4.
    pub rows: u32,
    /// Columns computed together: a power of two.
    pub columns: u32,
    /// Words of eight weights that an invocation fetches at once: 1 or 2.
    pub words: u32,
    /// Subgroups that share one sum: a power of two.
    pub split: u32,
    /// Blocks of columns that a team computes one after the other.
    pub blocks: u32,
    /// How factors are multiplied.
    pub dot: Dot,
}

/// How [`GemvQ4`] multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dot {
    /// In f32.
    F32,
    /// In integers: activations cut into three planes of bytes. As exact as f32, a third of its instructions.
    Planes,
}

/// Workgroup size of the GEMV.
pub(super) const GEMV_WORKGROUP: u32 = 128;

/// Where the weights of a product lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightLayout {
    /// One row per column of the result: sums run along memory.
    ByColumn,
    /// One row per term of the sum.
    ByTerm,
}

/// What the choice depends on besides the device.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Rows, columns and length of the sum.
    pub size: (u32, u32, u32),
    /// Layout of the weights.
    pub layout: WeightLayout,
    /// Length of the groups of 4-bit weights; `None` for dense weights.
    pub group: Option<u32>,
    /// True when factors may be multiplied as halves.
    pub halves: bool,
}

// LANES is the subgroup size.
fn reduce_lanes(v: f32, index: u32) -> f32 { return subgroupAdd(v); }

// Sum and maximum over one invocation.
fn reduce_add(v: f32, lane: u32) -> f32 { return v; }
fn reduce_max(v: f32, lane: u32) -> f32 { return v; }

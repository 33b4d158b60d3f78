// Sum and maximum over one invocation.
fn reduce_add(v: Reduced, lane: u32) -> Reduced { return v; }
fn reduce_max(v: Reduced, lane: u32) -> Reduced { return v; }

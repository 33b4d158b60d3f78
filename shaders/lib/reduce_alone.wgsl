// Sum and maximum over one invocation.
fn reduce_add(v: V, lane: u32) -> V { return v; }
fn reduce_max(v: V, lane: u32) -> V { return v; }

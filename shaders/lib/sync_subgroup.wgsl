// Invocations of a subgroup wait for each other.
fn sync() { subgroupBarrier(); }

// A team of one has its result.
fn gather(v: Acc, lane: u32) -> Acc { return v; }

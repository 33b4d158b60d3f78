// A team is a subgroup of LANES invocations.
fn finish(sums: ptr<function, array<f32, COUNT>>, at: Place, index: u32) {
    for (var i = 0u; i < COUNT; i++) {
        let total = subgroupAdd((*sums)[i]);
        if (index % TEAM == 0u) { deliver(at, i, total); }
    }
}

// A team is SPLIT subgroups of LANES invocations.
var<workgroup> parts: array<array<f32, COUNT>, WG / LANES>;
fn finish(sums: ptr<function, array<f32, COUNT>>, at: Place, index: u32) {
    for (var i = 0u; i < COUNT; i++) {
        let total = subgroupAdd((*sums)[i]);
        if (index % LANES == 0u) { parts[index / LANES][i] = total; }
    }
    workgroupBarrier();
    for (var i = index % TEAM; i < COUNT; i += TEAM) {
        var total = 0.0;
        for (var s = 0u; s < SPLIT; s++) { total += parts[index / TEAM * SPLIT + s][i]; }
        deliver(at, i, total);
    }
}

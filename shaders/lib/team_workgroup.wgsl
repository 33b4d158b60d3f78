// A team is the workgroup, a power of two; no subgroup operations.
var<workgroup> lanes: array<f32, WG>;
fn finish(sums: ptr<function, array<f32, COUNT>>, at: Place, index: u32) {
    for (var i = 0u; i < COUNT; i++) {
        workgroupBarrier();
        lanes[index] = (*sums)[i];
        workgroupBarrier();
        for (var half = WG / 2u; half > 0u; half /= 2u) {
            if (index < half) { lanes[index] += lanes[index + half]; }
            workgroupBarrier();
        }
        if (index == 0u) { deliver(at, i, lanes[0]); }
    }
}

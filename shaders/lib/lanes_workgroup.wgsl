// LANES is the workgroup size, a power of two.
var<workgroup> lanes: array<f32, LANES>;
fn reduce_lanes(v: f32, index: u32) -> f32 {
    workgroupBarrier();
    lanes[index] = v;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if (index < half) { lanes[index] += lanes[index + half]; }
        workgroupBarrier();
    }
    return lanes[0];
}

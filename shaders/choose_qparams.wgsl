// scale[o] and zero[o] so that all of block o of x, and 0, fits between the integers p.low and p.high; ROWS blocks per workgroup.
struct Params {
    count: u32, length: u32, rank: u32, eps: f32,
    low: f32, high: f32, unused_a: u32, unused_b: u32,
    sizes: array<vec4<u32>, 2>,
    strides: array<array<vec4<u32>, 2>, 1>,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slot = group_index(wg, groups);
    if (slot * ROWS >= p.count) { return; }
    var zeros = vec4<f32>();
    for (var r = 0u; r < ROWS; r++) {
        let o = min(slot * ROWS + r, p.count - 1u);
        var least = 0.0;
        var most = 0.0;
        for (var k = lane; k < p.length; k += WG) {
            let v = load_x(at(o * p.length + k, 0u));
            least = min(least, v);
            most = max(most, v);
        }
        let low = -reduce_max(-least, lane);
        let high = reduce_max(most, lane);
        let step = max(scale_of(low, high), p.eps);
        zeros[r] = round(clamp(zero_of(low, high, step), p.low, p.high));
        if (lane == 0u) { store_scale(o, step); }
    }
    if (lane == 0u) { put(slot, zeros); }
}

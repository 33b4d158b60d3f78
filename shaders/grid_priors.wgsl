// out[y * columns + x] = (x + offset) * stride, (y + offset) * stride
struct Params { count: u32, columns: u32, stride: f32, offset: f32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.count) { return; }
    let pixel = i / 2u;
    let at = select(pixel / p.columns, pixel % p.columns, i % 2u == 0u);
    store_out(i, (f32(at) + p.offset) * p.stride);
}

// out[c] = x[c - before] where that lies inside x, other(i, e) elsewhere; one word of out, PER elements, per invocation.
struct Params {
    words: u32, rank: u32, fill: u32, unused: u32,
    sizes: array<vec4<u32>, 2>,
    before: array<vec4<u32>, 2>,
    extent: array<vec4<u32>, 2>,
    strides: array<vec4<u32>, 2>,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.words) { return; }
    var word = 0u;
    for (var e = 0u; e < PER; e++) { word |= element(i, e) << (BITS * e); }
    out[i] = word;
}

fn element(i: u32, e: u32) -> u32 {
    var rest = i * PER + e;
    var s = 0u;
    var inside = true;
    for (var d = p.rank; d > 0u; d--) {
        let axis = d - 1u;
        let size = p.sizes[axis >> 2u][axis & 3u];
        let c = rest % size - p.before[axis >> 2u][axis & 3u];
        inside = inside && c < p.extent[axis >> 2u][axis & 3u];
        s += c * p.strides[axis >> 2u][axis & 3u];
        rest /= size;
    }
    if (!inside) { return other(i, e); }
    return part(x[s / PER], s);
}

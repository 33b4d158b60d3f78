// out[place(i)] = cell(i): cell i of the result lies at source(i) in x. A cell is a vector of words, a word or a part of one.
struct Params {
    count: u32, rank: u32, offset: u32, slot: u32,
    pace: u32, run: u32, pitch: u32, first: u32,
    sizes: array<vec4<u32>, 4>,
    strides: array<array<vec4<u32>, 4>, 1>,
}

fn source(i: u32) -> u32 { return p.offset + u32(live(p.slot)) * p.pace + at(i, 0u); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.count) { return; }
    out[place(i)] = cell(i);
}

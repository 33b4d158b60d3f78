// out[o] = finish of all x[o, k] over the p.length elements k of the dimensions that go; TEAM invocations per result.
struct Params {
    slots: u32, length: u32, step: u32, rank: u32,
    sizes: array<vec4<u32>, 2>,
    strides: array<array<vec4<u32>, 2>, 1>,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // A return would break the uniformity that barriers need.
    let slot = group_index(wg, groups) * (WG / TEAM) + item_of(lane);
    emit(min(slot, p.slots - 1u), lane, slot < p.slots && member_of(lane) == 0u);
}

fn result(o: u32, lane: u32) -> R { return finish(gather(share(at(o * p.length, 0u), o, member_of(lane)), lane)); }

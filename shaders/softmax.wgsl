// out = exp(x - max x) / sum exp(x - max x) along one dimension; TEAM invocations share an item: a line, in steps of one element
// or of four, or four neighbouring lines. Lines, lengths and distances count in steps.
struct Params { lines: u32, length: u32, inner: u32 }

const LOWEST: f32 = -3.4028234e38;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // A return would break the uniformity that barriers need.
    let item = group_index(wg, groups) * (WG / TEAM) + item_of(lane);
    let line = min(item, p.lines - 1u);
    let base = line / p.inner * p.inner * p.length + line % p.inner;
    var top = V(LOWEST);
    var sum = V();
    for (var k = member_of(lane); k < p.length; k += TEAM) {
        let v = item_of_x(base + k * p.inner);
        let higher = max(top, v);
        sum = sum * exp(top - higher) + exp(v - higher);
        top = higher;
    }
    let peak = highest(top, lane);
    let total = added(sum * exp(top - peak), lane);
    for (var k = member_of(lane); k < select(0u, p.length, item == line); k += TEAM) {
        let i = base + k * p.inner;
        put(i, finish(item_of_x(i) - peak, total));
    }
}

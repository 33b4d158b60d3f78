// out[0] = sum of x.
struct Params { count: u32 }

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var i = lane; i < p.count; i += WG) { sum += load_x(i); }
    let total = reduce_add(sum, lane);
    if (lane == 0u) { store_out(0u, total); }
}

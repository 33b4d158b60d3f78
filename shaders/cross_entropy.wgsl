// losses[r] = (log sum exp x[r] - x[r, label]) / count and gradient[r] = (softmax x[r] - one at the label) / count; rows whose
// label is negative give 0.
struct Params { rows: u32, length: u32, share: f32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group_index(wg, groups);
    if (row >= p.rows) { return; }
    let base = row * p.length;
    let label = load_labels(row);
    let share = select(0.0, p.share, label >= 0);
    let target_index = min(u32(max(label, 0)), p.length - 1u);
    var top = -3.4028234e38;
    for (var i = lane; i < p.length; i += WG) { top = max(top, load_x(base + i)); }
    let peak = reduce_max(top, lane);
    var sum = 0.0;
    for (var i = lane; i < p.length; i += WG) { sum += exp(load_x(base + i) - peak); }
    let total = reduce_add(sum, lane);
    for (var i = lane; i < p.length; i += WG) {
        let one = select(0.0, 1.0, i == target_index);
        store_gradient(base + i, (exp(load_x(base + i) - peak) / total - one) * share);
    }
    if (lane == 0u) { store_losses(row, (log(total) - (load_x(base + target_index) - peak)) * share); }
}

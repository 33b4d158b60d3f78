// out = (x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias, row by row; without CENTER the mean counts as 0.
// The rows of a group norm are `channels` channels each, `groups` rows an image, of so many steps.
struct Params { rows: u32, steps: u32, eps: f32, width: f32, groups: u32, channels: u32, channel_steps: u32 }

fn channel(row: u32, i: u32) -> u32 { return row % p.groups * p.channels + i / p.channel_steps; }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group_index(wg, groups);
    if (row >= p.rows) { return; }
    let base = row * p.steps;
    var mean = 0.0;
    if (CENTER) {
        var sum = V();
        for (var i = lane; i < p.steps; i += WG) { sum += item(base + i); }
        mean = reduce_add(total(sum), lane) / p.width;
    }
    var squares = V();
    for (var i = lane; i < p.steps; i += WG) {
        let d = item(base + i) - mean;
        squares += d * d;
    }
    let scale = inverseSqrt(reduce_add(total(squares), lane) / p.width + p.eps);
    for (var i = lane; i < p.steps; i += WG) { put(base + i, (item(base + i) - mean) * scale * weight(row, i) + bias(row, i)); }
    if (lane == 0u) { keep(row, mean, scale); }
}

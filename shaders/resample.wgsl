// out[p, y, x] = plane p of the operand at the place of pixel y, x; ratios are pixels of the operand per pixel of the result.
struct Params { count: u32, down: u32, across: u32, rows: u32, columns: u32, ratio_y: f32, ratio_x: f32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group_index(wg, groups) * WG + lane;
    if (index >= p.count) { return; }
    let y = place(index / p.across % p.down, p.ratio_y);
    let x = place(index % p.across, p.ratio_x);
    let plane = index / (p.across * p.down) * p.rows * p.columns;
    let top = min(u32(y), p.rows - 1u);
    let left = min(u32(x), p.columns - 1u);
    let upper = plane + top * p.columns;
    if (!BETWEEN) {
        store_out(index, load_x(upper + left));
        return;
    }
    let lower = plane + min(top + 1u, p.rows - 1u) * p.columns;
    let right = min(left + 1u, p.columns - 1u);
    let fraction = clamp(x - f32(left), 0.0, 1.0);
    let above = mixed(load_x(upper + left), load_x(upper + right), fraction);
    let below = mixed(load_x(lower + left), load_x(lower + right), fraction);
    store_out(index, mixed(above, below, clamp(y - f32(top), 0.0, 1.0)));
}

fn mixed(a: f32, b: f32, fraction: f32) -> f32 { return (1.0 - fraction) * a + fraction * b; }

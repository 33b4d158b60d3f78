// out[b, c, y, x] = plane b, c of the operand at grid[b, y, x]: x and y between -1 and 1 from edge to edge or, with CORNERS, from
// the center of the first pixel to that of the last. Outside is 0 (PAD 0), the border (1) or a reflection (2).
struct Params { count: u32, down: u32, across: u32, rows: u32, columns: u32, channels: u32 }

fn place(g: f32, size: u32) -> f32 {
    if (CORNERS) { return (g + 1.0) * 0.5 * (f32(size) - 1.0); }
    return ((g + 1.0) * f32(size) - 1.0) * 0.5;
}

fn reflected(c: f32, size: u32) -> f32 {
    let low = select(-0.5, 0.0, CORNERS);
    let span = f32(size) - select(0.0, 1.0, CORNERS);
    if (span == 0.0) { return 0.0; }
    let distance = abs(c - low);
    let flips = floor(distance / span);
    let rest = distance - flips * span;
    return low + select(rest, span - rest, flips % 2.0 == 1.0);
}

fn padded(c: f32, size: u32) -> f32 {
    if (PAD == 0u) { return c; }
    var at = c;
    if (PAD == 2u) { at = reflected(c, size); }
    return clamp(at, 0.0, f32(size) - 1.0);
}

// The pixel at whole coordinates, 0 outside.
fn pixel(plane: u32, y: f32, x: f32) -> f32 {
    if (!(y >= 0.0 && y < f32(p.rows) && x >= 0.0 && x < f32(p.columns))) { return 0.0; }
    return load_x((plane * p.rows + u32(y)) * p.columns + u32(x));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group_index(wg, groups) * WG + lane;
    if (index >= p.count) { return; }
    let pixels = p.down * p.across;
    let plane = index / pixels;
    let at = 2u * (plane / p.channels * pixels + index % pixels);
    store_out(index, interpolated(plane, place(load_grid(at + 1u), p.rows), place(load_grid(at), p.columns)));
}

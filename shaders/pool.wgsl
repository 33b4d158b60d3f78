// out[p, y, x] = finish(the elements of plane p under window y, x); what lies outside of the picture is skipped.
struct Params { count: u32, down: u32, across: u32, rows: u32, columns: u32, divisor: f32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group_index(wg, groups) * WG + lane;
    if (index >= p.count) { return; }
    let x = index % p.across;
    let y = index / p.across % p.down;
    let plane = index / (p.across * p.down) * p.rows * p.columns;
    var pool = start();
    for (var i = 0u; i < KERNEL_Y; i++) {
        let row = tap(y, i, STRIDE_Y, PADDING_Y, DILATION_Y);
        if (row >= p.rows) { continue; }
        for (var j = 0u; j < KERNEL_X; j++) {
            let column = tap(x, j, STRIDE_X, PADDING_X, DILATION_X);
            if (column < p.columns) { take(&pool, load_x(plane + row * p.columns + column), row * p.columns + column); }
        }
    }
    store_out(index, finish(index, pool, y, x));
}

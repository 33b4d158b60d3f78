// out[m, n] = row_scale[m] * sum_s part[s, m, n] + bias: the slices of a product; matrices of `part` are padded to whole tiles.
// After `width` columns the result goes on with the next batch.
struct Params {
    m: u32, n: u32, rows: u32, cols: u32,
    alpha: f32, beta: f32, bias_m: u32, bias_n: u32,
    width: u32, low: f32, high: f32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let fours = p.cols / 4u;
    let i = group_index(wg, groups) * WG + lane;
    let m = i / fours;
    let n = i % fours * 4u;
    if (m >= p.m || n >= p.n) { return; }
    var sum = vec4<f32>(0.0);
    for (var s = 0u; s < SLICES; s++) { sum += vec4<f32>(part[(s * p.rows + m) * fours + n / 4u]); }
    sum *= row_scale[m];
    for (var j = 0u; j < min(4u, p.n - n); j++) {
        let column = (n + j) % p.width;
        store_out(((n + j) / p.width * p.m + m) * p.width + column, epilogue(m, column, sum[j]));
    }
}

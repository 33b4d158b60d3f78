// out[b, m, n] = alpha * sum_k x[b, m, k] * w[b, n, k] + beta * bias; a BM x BN tile per workgroup, 4 x 4 per invocation.

struct Octet { low: vec4<f32>, high: vec4<f32> }

const BK: u32 = 16u;
const THREADS: u32 = BM * BN / 16u;
var<workgroup> xs: array<array<vec4<Mul>, BM / 4u>, BK>;
var<workgroup> ws: array<array<vec4<Mul>, BN / 4u>, BK>;

fn load_x_tile(lane: u32, base: u32, row0: u32, k0: u32) {
    for (var i = lane; i < BM * BK / 4u; i += THREADS) {
        let row = i / (BK / 4u);
        let c = (i % (BK / 4u)) * 4u;
        var v = vec4<f32>(0.0);
        if (row0 + row < p.m) {
            v = x4(base + (row0 + row) * p.k, k0 + c);
        }
        for (var j = 0u; j < 4u; j++) { xs[c + j][row / 4u][row % 4u] = Mul(v[j]); }
    }
}

fn load_w_tile(lane: u32, b: u32, col0: u32, k0: u32) {
    for (var i = lane; i < BN * BK / 8u; i += THREADS) {
        let col = weight_column(i, BK / 8u);
        let o = weight_octet(i, BK / 8u);
        var w = Octet(vec4<f32>(0.0), vec4<f32>(0.0));
        if (col0 + col < p.n && k0 / 8u + o < p.k8) { w = weight8(b, col0 + col, k0 / 8u + o); }
        for (var j = 0u; j < 4u; j++) {
            ws[o * 8u + j][col / 4u][col % 4u] = Mul(w.low[j]);
            ws[o * 8u + 4u + j][col / 4u][col % 4u] = Mul(w.high[j]);
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group_index(wg, groups);
    let b = index / (p.tiles_m * p.tiles_n);
    if (b >= p.batch) { return; }
    let tile = index % (p.tiles_m * p.tiles_n);
    let row0 = (tile / p.tiles_n) * BM;
    let col0 = (tile % p.tiles_n) * BN;
    let tx = lane % (BN / 4u);
    let ty = lane / (BN / 4u);
    var sum: array<vec4<f32>, 4>;
    for (var k0 = 0u; k0 < p.k; k0 += BK) {
        load_x_tile(lane, b * p.x_batch, row0, k0);
        load_w_tile(lane, b, col0, k0);
        workgroupBarrier();
        var part: array<vec4<Mul>, 4>;
        for (var k = 0u; k < BK; k++) {
            let a = xs[k][ty];
            let w = ws[k][tx];
            for (var i = 0u; i < 4u; i++) { part[i] = fma(vec4<Mul>(a[i]), w, part[i]); }
        }
        for (var i = 0u; i < 4u; i++) { sum[i] += vec4<f32>(part[i]); }
        workgroupBarrier();
    }
    let col = col0 + tx * 4u;
    for (var i = 0u; i < 4u; i++) {
        let row = row0 + ty * 4u + i;
        if (row >= p.m) { continue; }
        for (var j = 0u; j < 4u; j++) {
            if (col + j < p.n) { store_out((b * p.m + row) * p.width + col + j, epilogue(row, col + j, sum[i][j])); }
        }
    }
}

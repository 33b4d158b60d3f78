// out[m, n] = row_scale[m] * sum_k x[m, k] * w[n, k] + bias with 16 x 16 x 16 products of cooperative matrices: factors in
// halves, a BM x BN tile per workgroup, a WM x WN tile per subgroup, both factors staged in shared memory BK columns at a
// time. The next columns are fetched into registers while the present ones are multiplied.
const BK: u32 = 64u;
// Rows of shared memory are 8 halves apart from a multiple of 64, so that the rows of a fragment lie in different banks.
const STRIDE: u32 = BK / 4u + 2u;
const SUBGROUPS_N: u32 = BN / WN;
const SUBGROUPS: u32 = BM / WM * SUBGROUPS_N;
const THREADS: u32 = SUBGROUPS * LANES;
const X_ITEMS: u32 = BM * BK / 4u / THREADS;
const W_ITEMS: u32 = BN * BK / 4u / THREADS;
// Weights are multiplied by this in halves and the sums divided by it: small scales keep their bits.
const WEIGHT_SCALE: f32 = 16.0;

var<workgroup> xs: array<vec4<f16>, BM * STRIDE>;
var<workgroup> ws: array<vec4<f16>, BN * STRIDE>;
var<workgroup> stage: array<f32, SUBGROUPS * 256u>;

fn halves(bits: u32, scale: f32) -> vec4<f16> {
    let n = vec4<u32>(bits & 15u, (bits >> 4u) & 15u, (bits >> 8u) & 15u, (bits >> 12u) & 15u);
    return (vec4<f16>(n) - 8.0h) * f16(scale);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    // A return would break uniformity: workgroups beyond the last tile compute it once more.
    let tile = min(group_index(wg, groups), p.tiles_m * p.tiles_n - 1u);
    // Neighbours share weights.
    let row0 = (tile % p.tiles_m) * BM;
    let col0 = (tile / p.tiles_m) * BN;
    let subgroup = index / LANES;
    let lane = index % LANES;
    let wm = (subgroup / SUBGROUPS_N) * WM;
    let wn = (subgroup % SUBGROUPS_N) * WN;
    let width = (p.k + BK - 1u) / BK * BK;
    var sum: array<array<coop_mat16x16<f32, C>, WN / 16u>, WM / 16u>;
    var x: array<vec4<f16>, X_ITEMS>;
    var w: array<vec4<f16>, W_ITEMS>;
    for (var i = 0u; i < X_ITEMS; i++) { x[i] = fetch_x(index + i * THREADS, row0, 0u, width); }
    for (var i = 0u; i < W_ITEMS; i++) { w[i] = fetch_w(index + i * THREADS, col0, 0u); }
    for (var k0 = 0u; k0 < width; k0 += BK) {
        for (var i = 0u; i < X_ITEMS; i++) { xs[place(index + i * THREADS)] = x[i]; }
        for (var i = 0u; i < W_ITEMS; i++) { ws[place(index + i * THREADS)] = w[i]; }
        workgroupBarrier();
        let next = min(k0 + BK, width - BK);
        for (var i = 0u; i < X_ITEMS; i++) { x[i] = fetch_x(index + i * THREADS, row0, next, width); }
        for (var i = 0u; i < W_ITEMS; i++) { w[i] = fetch_w(index + i * THREADS, col0, next); }
        for (var k = 0u; k < BK / 16u; k++) {
            for (var j = 0u; j < WN / 16u; j++) {
                let b = coopLoad<coop_mat16x16<f16, B>>(&ws[(wn + j * 16u) * STRIDE + k * 4u], STRIDE);
                for (var i = 0u; i < WM / 16u; i++) {
                    let a = coopLoadT<coop_mat16x16<f16, A>>(&xs[(wm + i * 16u) * STRIDE + k * 4u], STRIDE);
                    sum[i][j] = coopMultiplyAdd(a, b, sum[i][j]);
                }
            }
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < WM / 16u; i++) {
        for (var j = 0u; j < WN / 16u; j++) {
            let part = sum[i][j];
            let at = subgroup * 256u;
            let side = 16u;
            coopStoreT(part, &stage[at], side);
            workgroupBarrier();
            write_out(at, lane, row0 + wm + i * 16u, col0 + wn + j * 16u);
            workgroupBarrier();
        }
    }
}

// Where item i, four neighbours along k, lies in shared memory.
fn place(i: u32) -> u32 { return i / (BK / 4u) * STRIDE + i % (BK / 4u); }

fn fetch_x(i: u32, row0: u32, k0: u32, width: u32) -> vec4<f16> {
    let row = min(row0 + i / (BK / 4u), p.m - 1u);
    return x_half[(row * width + k0) / 4u + i % (BK / 4u)];
}

fn fetch_w(i: u32, col0: u32, k0: u32) -> vec4<f16> {
    let n = min(col0 + i / (BK / 4u), p.n - 1u);
    let k = k0 + i % (BK / 4u) * 4u;
    if (k >= p.k8 * 8u) { return vec4<f16>(); }
    let bits = weight[n * p.k8 + k / 8u] >> (4u * (k & 4u));
    return halves(bits, load_scales(min(k, p.k - 1u) / p.group * p.scale_k + n * p.scale_n) * WEIGHT_SCALE);
}

fn write_out(at: u32, lane: u32, row0: u32, col0: u32) {
    for (var i = lane; i < 256u; i += LANES) {
        let m = row0 + i / 16u;
        let n = col0 + i % 16u;
        if (m < p.m && n < p.n) { store_out(m * p.n + n, epilogue(m, n, stage[at + i] * row_scale[m] / WEIGHT_SCALE)); }
    }
}

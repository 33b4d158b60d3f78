// out[m, n] = row_scale[m] * sum_k x[m, k] * w[n, k] + bias with 16 x 16 x 16 products of cooperative matrices: factors in
// halves, a BM x BN tile per workgroup, a 32 x WN tile per subgroup, both factors staged in shared memory BK columns at a
// time. The next columns are fetched into registers while the present ones are multiplied.
const BK: u32 = 64u;
// Rows of shared memory are 8 halves apart from a multiple of 64, so that the rows of a fragment lie in different banks.
const STRIDE: u32 = BK / 4u + 2u;
const SUBGROUPS_N: u32 = BN / WN;
const SUBGROUPS: u32 = BM / 32u * SUBGROUPS_N;
const THREADS: u32 = SUBGROUPS * LANES;
// Each invocation moves four neighbouring columns of every ROW_STEP-th row.
const ROW_STEP: u32 = THREADS / (BK / 4u);
const X_ITEMS: u32 = BM / ROW_STEP;
const W_ITEMS: u32 = BN / ROW_STEP;
// Weights are multiplied by this in halves and the sums divided by it: small scales keep their bits.
const WEIGHT_SCALE: f32 = 16.0;
// Eight weights of 0.
const ZERO: u32 = 0x88888888u;

var<workgroup> xs: array<vec4<f16>, BM * STRIDE>;
var<workgroup> ws: array<vec4<f16>, BN * STRIDE>;
var<workgroup> stage: array<f32, SUBGROUPS * 256u>;

struct Fetched {
    x: array<vec4<f16>, X_ITEMS>,
    bits: array<u32, W_ITEMS>,
    scale: array<f32, W_ITEMS>,
}

struct From {
    x: array<u32, X_ITEMS>,
    w: array<u32, W_ITEMS>,
    scale: array<u32, W_ITEMS>,
    column: u32,
}

fn start(row0: u32, col0: u32, row: u32, column: u32, width: u32) -> From {
    var at: From;
    at.column = column;
    for (var i = 0u; i < X_ITEMS; i++) { at.x[i] = min(row0 + row + i * ROW_STEP, p.m - 1u) * (width / 4u) + column; }
    for (var i = 0u; i < W_ITEMS; i++) {
        let n = min(col0 + row + i * ROW_STEP, p.n - 1u);
        at.w[i] = n * p.k8 + column / 2u;
        at.scale[i] = n * p.scale_n;
    }
    return at;
}

fn fetch(at: From, k0: u32) -> Fetched {
    var f: Fetched;
    let k = k0 + at.column * 4u;
    let inside = k < p.k8 * 8u;
    let scale = min(k, p.k - 1u) / GROUP * p.scale_k;
    for (var i = 0u; i < X_ITEMS; i++) { f.x[i] = x_half[at.x[i] + k0 / 4u]; }
    for (var i = 0u; i < W_ITEMS; i++) { f.bits[i] = select(ZERO, weight[select(0u, at.w[i] + k0 / 8u, inside)], inside); }
    for (var i = 0u; i < W_ITEMS; i++) { f.scale[i] = load_scales(at.scale[i] + scale); }
    return f;
}

fn halves(bits: u32, scale: f32) -> vec4<f16> {
    let n = vec4<u32>(bits & 15u, (bits >> 4u) & 15u, (bits >> 8u) & 15u, (bits >> 12u) & 15u);
    return (vec4<f16>(n) - 8.0h) * f16(scale * WEIGHT_SCALE);
}

fn keep(f: Fetched, to: u32, shift: u32) {
    for (var i = 0u; i < X_ITEMS; i++) { xs[to + i * ROW_STEP * STRIDE] = f.x[i]; }
    for (var i = 0u; i < W_ITEMS; i++) { ws[to + i * ROW_STEP * STRIDE] = halves(f.bits[i] >> shift, f.scale[i]); }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    // A return would break uniformity: workgroups beyond the last tile compute it once more.
    let tile = min(group_index(wg, groups), p.tiles_m * p.tiles_n - 1u);
    // Neighbours share weights.
    let row0 = (tile % p.tiles_m) * BM;
    let col0 = (tile / p.tiles_m) * BN;
    let subgroup = index / LANES;
    let wm = (subgroup / SUBGROUPS_N) * 32u;
    let wn = (subgroup % SUBGROUPS_N) * WN;
    let width = (p.k + BK - 1u) / BK * BK;
    let column = index % (BK / 4u);
    let row = index / (BK / 4u);
    let at = start(row0, col0, row, column, width);
    var upper: array<coop_mat16x16<f32, C>, PARTS>;
    var lower: array<coop_mat16x16<f32, C>, PARTS>;
    var fetched = fetch(at, 0u);
    for (var k0 = 0u; k0 < width; k0 += BK) {
        keep(fetched, row * STRIDE + column, 16u * (column & 1u));
        workgroupBarrier();
        fetched = fetch(at, min(k0 + BK, width - BK));
        for (var k = 0u; k < BK / 16u; k++) {
            let a = coopLoadT<coop_mat16x16<f16, A>>(&xs[wm * STRIDE + k * 4u], STRIDE);
            let c = coopLoadT<coop_mat16x16<f16, A>>(&xs[(wm + 16u) * STRIDE + k * 4u], STRIDE);
            for (var j = 0u; j < PARTS; j++) {
                let b = coopLoad<coop_mat16x16<f16, B>>(&ws[(wn + j * 16u) * STRIDE + k * 4u], STRIDE);
                upper[j] = coopMultiplyAdd(a, b, upper[j]);
                lower[j] = coopMultiplyAdd(c, b, lower[j]);
            }
        }
        workgroupBarrier();
    }
    // Written out part by part: a loop with barriers in it would keep the sums out of registers.
    let corner = Corner(subgroup * 256u, index % LANES, row0 + wm, col0 + wn);
    deliver(upper[0], lower[0], corner, 0u);
    if (PARTS > 1u) { deliver(upper[SECOND], lower[SECOND], corner, 16u); }
    if (PARTS > 2u) { deliver(upper[THIRD], lower[THIRD], corner, 32u); }
    if (PARTS > 3u) { deliver(upper[FOURTH], lower[FOURTH], corner, 48u); }
}

const PARTS: u32 = WN / 16u;
const SECOND: u32 = min(1u, PARTS - 1u);
const THIRD: u32 = min(2u, PARTS - 1u);
const FOURTH: u32 = min(3u, PARTS - 1u);

struct Corner { place: u32, lane: u32, row: u32, col: u32 }

fn deliver(upper: coop_mat16x16<f32, C>, lower: coop_mat16x16<f32, C>, at: Corner, column: u32) {
    let place = at.place;
    let side = 16u;
    coopStoreT(upper, &stage[place], side);
    workgroupBarrier();
    write_out(place, at.lane, at.row, at.col + column);
    workgroupBarrier();
    coopStoreT(lower, &stage[place], side);
    workgroupBarrier();
    write_out(place, at.lane, at.row + 16u, at.col + column);
    workgroupBarrier();
}

fn write_out(place: u32, lane: u32, row0: u32, col0: u32) {
    for (var i = lane; i < 256u; i += LANES) {
        let m = row0 + i / 16u;
        let n = col0 + i % 16u;
        if (m < p.m && n < p.n) { store_out(m * p.width + n, epilogue(m, n, stage[place + i] * (row_scale[m] / WEIGHT_SCALE))); }
    }
}

// out[m, n] = row_scale[m] * sum_k x[m, k] * w[n, k] + bias for few rows: BM x BN per workgroup by cooperative matrices, the
// sum cut among its subgroups, each with shared memory of its own for the weights that it unpacks.
const THREADS: u32 = SPLIT * LANES;
const ITEMS: u32 = BN * OCTETS / LANES;
const MI: u32 = BM / FRAG;
const NI: u32 = BN / FRAG;
const TILE: u32 = BM * BN;

var<workgroup> ws: array<vec4<f16>, SPLIT * HELD>;
var<workgroup> parts: array<f32, SPLIT * TILE>;

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let col0 = min(group_index(wg, groups), p.tiles_n - 1u) * BN;
    let steps = (p.k + BK - 1u) / BK;
    let each = (steps + SPLIT - 1u) / SPLIT;
    let from_step = subgroup * each;
    let mine = subgroup * HELD;
    var acc: array<Acc, MI * NI>;
    var rows: array<Row, ITEMS>;
    var bits: array<Bits, ITEMS>;
    var scale: array<f32, ITEMS>;
    for (var i = 0u; i < ITEMS; i++) { // unroll
        rows[i] = row_of(col0, lane + i * LANES);
        bits[i] = packed(rows[i], from_step * BK, lane + i * LANES);
        scale[i] = scale_of(rows[i], from_step * BK, lane + i * LANES);
    }
    for (var step = 0u; step < each; step++) {
        for (var i = 0u; i < ITEMS; i++) { unpack(mine, bits[i], scale[i], lane + i * LANES); } // unroll
        workgroupBarrier();
        let after = from_step + step + 1u;
        let next = select(after, min(after, steps - 1u), WHOLE) * BK;
        for (var i = 0u; i < ITEMS; i++) { // unroll
            bits[i] = packed(rows[i], next, lane + i * LANES);
            scale[i] = scale_of(rows[i], next, lane + i * LANES);
        }
        // Steps beyond the last have weights of 0.
        let k0 = min(from_step + step, steps - 1u) * (BK / FRAG);
        for (var k = 0u; k < BK / FRAG; k++) { // unroll
            var a: array<MatA, MI>;
            for (var i = 0u; i < MI; i++) { // unroll
                a[i] = coopLoadT<MatA>(&x_half[(i * (steps * BK / FRAG) + k0 + k) * FRAGMENT], FRAG / 4u);
            }
            for (var j = 0u; j < NI; j++) { // unroll
                let b = coopLoad<MatB>(&ws[mine + j * FRAG * STRIDE + k * (FRAG / 4u)], STRIDE);
                for (var i = 0u; i < MI; i++) { acc[i * NI + j] = coopMultiplyAdd(a[i], b, acc[i * NI + j]); } // unroll
            }
        }
        workgroupBarrier();
    }
    let side = BN;
    for (var i = 0u; i < MI; i++) { // unroll
        for (var j = 0u; j < NI; j++) { // unroll
            let at = subgroup * TILE + i * FRAG * BN + j * FRAG;
            let sums = acc[i * NI + j];
            coopStoreT(sums, &parts[at], side);
        }
    }
    workgroupBarrier();
    for (var i = index; i < TILE; i += THREADS) {
        let m = i / BN;
        let n = col0 + i % BN;
        var sum = 0.0;
        for (var s = 0u; s < SPLIT; s++) { sum += parts[s * TILE + i]; }
        if (m < p.m && n < p.n) { store_out(m * p.width + n, epilogue(m, n, sum * row_scale[m])); }
    }
}

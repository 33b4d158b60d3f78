// part[m, n] = sum_k x[m, k] * w[n, k] over one slice of k, by products of cooperative matrices: a BM x BN tile per workgroup,
// a WM x WN tile per subgroup. The activations lie in fragments (see `half_rows`) and go from memory straight into matrices.
// The other factor is fetched into registers one step ahead, and unpacked into shared memory.
const ACROSS: u32 = BN / WN;
const THREADS: u32 = BM / WM * ACROSS * LANES;
const ITEMS: u32 = BN * BK / 8u / THREADS;
const MI: u32 = WM / FRAG;
const NI: u32 = WN / FRAG;

var<workgroup> ws: array<vec4<f16>, HELD>;

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    // A return would break uniformity: workgroups beyond the last tile compute it once more and store nothing.
    let job = wg.x + wg.y * groups.x;
    let tiles = p.tiles_m * p.tiles_n;
    let surplus = job >= tiles * SLICES;
    let tile = min(job, tiles * SLICES - 1u) % tiles;
    let slice = min(job, tiles * SLICES - 1u) / tiles;
    // Neighbours share weights.
    let row0 = (tile % p.tiles_m) * BM + subgroup / ACROSS * WM;
    let col0 = (tile / p.tiles_m) * BN;
    let wn = subgroup % ACROSS * WN;
    let width = (p.k + BK - 1u) / BK * BK;
    let steps = (width / BK + SLICES - 1u) / SLICES;
    let from_k = slice * steps * BK;
    let to_k = min(from_k + steps * BK, width);
    let x0 = row0 / FRAG * (width / FRAG) * FRAGMENT;
    var acc: array<Acc, MI * NI>;
    var rows: array<Row, ITEMS>;
    var bits: array<Bits, ITEMS>;
    var scale: array<f32, ITEMS>;
    for (var i = 0u; i < ITEMS; i++) { // unroll
        rows[i] = row_of(col0, index + i * THREADS);
        bits[i] = packed(rows[i], min(from_k, width - BK), index + i * THREADS);
        scale[i] = scale_of(rows[i], min(from_k, width - BK), index + i * THREADS);
    }
    for (var k0 = from_k; k0 < to_k; k0 += BK) {
        for (var i = 0u; i < ITEMS; i++) { unpack(0u, bits[i], scale[i], index + i * THREADS); } // unroll
        workgroupBarrier();
        let next = min(k0 + BK, to_k - BK);
        for (var i = 0u; i < ITEMS; i++) { // unroll
            bits[i] = packed(rows[i], next, index + i * THREADS);
            scale[i] = scale_of(rows[i], next, index + i * THREADS);
        }
        for (var k = 0u; k < BK / FRAG; k++) {
            var a: array<MatA, MI>;
            for (var i = 0u; i < MI; i++) { // unroll
                a[i] = coopLoadT<MatA>(&x_half[x0 + (i * (width / FRAG) + k0 / FRAG + k) * FRAGMENT], FRAG / 4u);
            }
            for (var j = 0u; j < NI; j++) { // unroll
                let b = factor(wn + j * FRAG, k * FRAG);
                for (var i = 0u; i < MI; i++) { acc[i * NI + j] = coopMultiplyAdd(a[i], b, acc[i * NI + j]); } // unroll
            }
        }
        workgroupBarrier();
    }
    let stride = row_stride();
    if (!surplus) {
        for (var i = 0u; i < MI; i++) { // unroll
            for (var j = 0u; j < NI; j++) { // unroll
                let at = first_element(slice) + (row0 + i * FRAG) * stride + col0 + wn + j * FRAG;
                let sums = acc[i * NI + j];
                coopStoreT(sums, &out[at], stride);
            }
        }
    }
    finish(Region(row0, col0 + wn, lane), surplus);
}

struct Region { row: u32, col: u32, lane: u32 }

// out[b, m, n] = alpha * sum_k x[b, m, k] * w[b, n, k] + beta * bias; a BM x BN tile per workgroup, PM x PN blocks of 4 x 4 per
// invocation. The next BK columns are fetched into registers while the present ones are multiplied.
struct Octet { low: vec4<f32>, high: vec4<f32> }

const BK: u32 = 16u;
const ACROSS: u32 = BN / (4u * PN);
const DOWN: u32 = BM / (4u * PM);
const THREADS: u32 = ACROSS * DOWN;
const X_ITEMS: u32 = (BM * BK / 4u + THREADS - 1u) / THREADS;
const W_ITEMS: u32 = (BN * BK / 8u + THREADS - 1u) / THREADS;
// One vector more than a row needs: columns of a tile lie in different banks.
var<workgroup> xs: array<array<vec4<Mul>, BM / 4u + 1u>, BK>;
var<workgroup> ws: array<array<vec4<Mul>, BN / 4u + 1u>, BK>;

struct Fetched { x: array<vec4<f32>, X_ITEMS>, w: array<Octet, W_ITEMS> }

fn fetch(lane: u32, b: u32, row0: u32, col0: u32, k0: u32) -> Fetched {
    var f: Fetched;
    for (var j = 0u; j < X_ITEMS; j++) { // unroll
        let i = lane + j * THREADS;
        let row = row0 + i / (BK / 4u);
        if (i < BM * BK / 4u && row < p.m) { f.x[j] = x4(line_of(b, row), k0 + i % (BK / 4u) * 4u); }
    }
    for (var j = 0u; j < W_ITEMS; j++) { // unroll
        let i = lane + j * THREADS;
        let col = col0 + weight_column(i, BK / 8u);
        let o = k0 / 8u + weight_octet(i, BK / 8u);
        if (i < BN * BK / 8u && col < p.n && o < p.k8) { f.w[j] = weight8(b, col, o); }
    }
    return f;
}

fn keep(lane: u32, f: Fetched) {
    for (var j = 0u; j < X_ITEMS; j++) { // unroll
        let i = lane + j * THREADS;
        let row = i / (BK / 4u);
        let c = i % (BK / 4u) * 4u;
        if (i < BM * BK / 4u) {
            for (var e = 0u; e < 4u; e++) { xs[c + e][row / 4u][row % 4u] = Mul(f.x[j][e]); } // unroll
        }
    }
    for (var j = 0u; j < W_ITEMS; j++) { // unroll
        let i = lane + j * THREADS;
        let col = weight_column(i, BK / 8u);
        let c = weight_octet(i, BK / 8u) * 8u;
        if (i < BN * BK / 8u) {
            for (var e = 0u; e < 4u; e++) { // unroll
                ws[c + e][col / 4u][col % 4u] = Mul(f.w[j].low[e]);
                ws[c + 4u + e][col / 4u][col % 4u] = Mul(f.w[j].high[e]);
            }
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
    let tx = lane % ACROSS;
    let ty = lane / ACROSS;
    var sum: array<vec4<f32>, 4u * PM * PN>;
    var fetched = fetch(lane, b, row0, col0, 0u);
    for (var k0 = 0u; k0 < p.k; k0 += BK) {
        keep(lane, fetched);
        workgroupBarrier();
        if (k0 + BK < p.k) { fetched = fetch(lane, b, row0, col0, k0 + BK); }
        // Drivers multiply halves by twos, if they come as twos.
        var part: array<vec2<Mul>, 8u * PM * PN>;
        for (var k = 0u; k < BK; k++) {
            for (var i = 0u; i < PM; i++) { // unroll
                let a = xs[k][i * DOWN + ty];
                for (var j = 0u; j < PN; j++) { // unroll
                    let w = ws[k][j * ACROSS + tx];
                    for (var r = 0u; r < 4u; r++) { // unroll
                        let at = (i * 4u + r) * PN + j;
                        if (HALF_SUMS) {
                            part[2u * at] = fma(vec2<Mul>(a[r]), w.xy, part[2u * at]);
                            part[2u * at + 1u] = fma(vec2<Mul>(a[r]), w.zw, part[2u * at + 1u]);
                        } else {
                            sum[at] = fma(vec4<f32>(f32(a[r])), vec4<f32>(w), sum[at]);
                        }
                    }
                }
            }
        }
        if (HALF_SUMS) {
            for (var i = 0u; i < 4u * PM * PN; i++) { sum[i] += vec4<f32>(vec4<Mul>(part[2u * i], part[2u * i + 1u])); } // unroll
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < 4u * PM; i++) { // unroll
        let row = row0 + (i / 4u * DOWN + ty) * 4u + i % 4u;
        for (var j = 0u; j < PN; j++) { // unroll
            let col = col0 + (j * ACROSS + tx) * 4u;
            for (var e = 0u; e < 4u; e++) { // unroll
                let at = out_at(b, row, col + e);
                if (row < p.m && col + e < p.n && at != NOWHERE) { store_out(at, epilogue(row, col + e, sum[i * PN + j][e])); }
            }
        }
    }
}

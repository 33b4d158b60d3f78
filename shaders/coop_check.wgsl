// out = a * b for one FRAG x FRAG x FRAG product; a by rows, b by columns, as the real kernels load them.
struct Params { side: u32 }

const FOURS: u32 = FRAG * FRAG / 4u;
var<workgroup> b_tile: array<vec4<f16>, FOURS>;

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < FOURS; i += LANES) { b_tile[i] = b[i]; }
    workgroupBarrier();
    let x = coopLoadT<MatA>(&a[0], p.side / 4u);
    let w = coopLoad<MatB>(&b_tile[0], p.side / 4u);
    var sum: Acc;
    sum = coopMultiplyAdd(x, w, sum);
    let side = p.side;
    coopStoreT(sum, &out[0], side);
}

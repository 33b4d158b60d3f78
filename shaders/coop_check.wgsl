// out = a * b for one 16 x 16 x 16 product; a by rows, b by columns, as the real kernels load them.
struct Params { side: u32 }

var<workgroup> a_tile: array<vec4<f16>, 64>;
var<workgroup> b_tile: array<vec4<f16>, 64>;

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < 64u; i += LANES) {
        a_tile[i] = a[i];
        b_tile[i] = b[i];
    }
    workgroupBarrier();
    let stride = p.side / 4u;
    let x = coopLoadT<coop_mat16x16<f16, A>>(&a_tile[0], stride);
    let w = coopLoad<coop_mat16x16<f16, B>>(&b_tile[0], stride);
    var sum: coop_mat16x16<f32, C>;
    sum = coopMultiplyAdd(x, w, sum);
    let side = p.side;
    coopStoreT(sum, &out[0], side);
}

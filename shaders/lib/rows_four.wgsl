// Four rows at a time; rows beyond the last repeat it.
alias Rows = vec4<f32>;
fn row_of(v: Rows, m: u32) -> f32 { return v[m]; }
fn x8(at: Place, k: u32) -> array<Rows, 8> {
    let first = at.b * p.x_batch;
    let last = p.m - 1u;
    let r0 = first + at.row * p.k;
    let r1 = first + min(at.row + 1u, last) * p.k;
    let r2 = first + min(at.row + 2u, last) * p.k;
    let r3 = first + min(at.row + 3u, last) * p.k;
    let a = transpose(mat4x4<f32>(x4(r0, k), x4(r1, k), x4(r2, k), x4(r3, k)));
    let b = transpose(mat4x4<f32>(x4(r0, k + 4u), x4(r1, k + 4u), x4(r2, k + 4u), x4(r3, k + 4u)));
    return array<Rows, 8>(a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]);
}

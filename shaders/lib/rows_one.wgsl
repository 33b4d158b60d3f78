// One row at a time.
alias Rows = f32;
fn row_of(v: Rows, m: u32) -> f32 { return v; }
fn x8(at: Place, k: u32) -> array<Rows, 8> {
    let base = at.b * p.x_batch + at.row * p.k;
    let a = x4(base, k);
    let b = x4(base, k + 4u);
    return array<Rows, 8>(a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w);
}

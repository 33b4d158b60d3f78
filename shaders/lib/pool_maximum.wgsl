// The greatest element and its place in the plane: the first of equal ones, but the last NaN.
struct Pool { best: f32, place: u32 }
fn start() -> Pool {
    var infinity = 0xff800000u;
    return Pool(bitcast<f32>(infinity), 0xffffffffu);
}
fn take(pool: ptr<function, Pool>, v: f32, place: u32) {
    if (v > (*pool).best || is_nan(v) || (*pool).place == 0xffffffffu) { *pool = Pool(v, place); }
}
fn finish(index: u32, pool: Pool, y: u32, x: u32) -> f32 {
    keep(index, pool.place);
    return pool.best;
}

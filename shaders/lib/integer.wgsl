// The functions of lib/float.wgsl that also exist for i32; results wrap.
fn nearest(x: i32) -> i32 { return x; }
fn positive(x: i32) -> i32 { return max(x, 0); }
fn bounded(x: i32, low: i32, high: i32) -> i32 { return clamp(x, low, high); }

fn lowest(a: i32, b: i32) -> i32 { return min(a, b); }

fn power(x: i32, e: i32) -> i32 {
    if (e < 0) { return select(0, select(1, x, (e & 1) == 1), abs(x) == 1); }
    var base = x;
    var result = 1;
    for (var n = u32(e); n > 0u; n >>= 1u) {
        if ((n & 1u) == 1u) { result *= base; }
        base *= base;
    }
    return result;
}

// kind: 1 towards minus infinity, otherwise towards zero.
fn quotient(a: i32, b: i32, kind: i32) -> i32 {
    let q = a / b;
    let rest = a - q * b;
    return select(q, q - 1, kind == 1 && rest != 0 && (rest < 0) != (b < 0));
}

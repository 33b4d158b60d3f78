// Functions of f32 that hold where the built-in ones may not: NaN passes through, nothing overflows on the way.
fn nan() -> f32 {
    var bits = 0x7fc00000u;
    return bitcast<f32>(bits);
}

fn hyperbolic(x: f32) -> f32 {
    let inner = select(tanh(clamp(x, -9.5, 9.5)), sign(x), abs(x) > 9.5);
    return select(inner, x, is_nan(x));
}

fn positive(x: f32) -> f32 { return select(select(x, 0.0, x < 0.0), x, is_nan(x)); }
fn bounded(x: f32, low: f32, high: f32) -> f32 { return select(select(select(x, low, x < low), high, x > high), x, is_nan(x)); }

// Taylor series on [-pi/4, pi/4] after subtracting multiples of pi/2 in three exact parts; `turn` counts quarters.
fn quarter(x: f32, turn: i32) -> f32 {
    let k = round(x * 0.63661977236758);
    let r = ((x - k * 1.5703125) - k * 4.837512969970703e-4) - k * 7.549789948768648e-8;
    let q = i32(k) + turn;
    let s = r * r;
    let odd = r * (1.0 + s * (-0.16666667 + s * (8.3333333e-3 + s * (-1.9841270e-4 + s * 2.7557319e-6))));
    let even = 1.0 + s * (-0.5 + s * (4.1666667e-2 + s * (-1.3888889e-3 + s * 2.4801587e-5)));
    let v = select(odd, even, (q & 1) == 1);
    return select(v, -v, (q & 2) == 2);
}
fn sine(x: f32) -> f32 { return quarter(x, 0); }
fn cosine(x: f32) -> f32 { return quarter(x, 1); }

// exp(-z^2) times a polynomial in 1 / (1 + z / 2): relative error below 1.2e-7 for z >= 0 (Numerical Recipes, erfcc).
fn erfc_positive(z: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.5 * z);
    var e = 0.17087277;
    e = -0.82215223 + t * e;
    e = 1.48851587 + t * e;
    e = -1.13520398 + t * e;
    e = 0.27886807 + t * e;
    e = -0.18628806 + t * e;
    e = 0.09678418 + t * e;
    e = 0.37409196 + t * e;
    e = 1.00002368 + t * e;
    return t * exp(-z * z - 1.26551223 + t * e);
}

fn gelu(x: f32, tangent: f32) -> f32 {
    if (tangent != 0.0) {
        return 0.5 * x * (1.0 + hyperbolic(0.7978845608 * (x + 0.044715 * x * x * x)));
    }
    let tail = 0.5 * erfc_positive(abs(x) * 0.70710678118);
    return x * select(1.0 - tail, tail, x < 0.0);
}

// Small integral exponents multiply, so that signs and powers of exact numbers are exact.
fn power(x: f32, e: f32) -> f32 {
    let whole = e == round(e);
    if (whole && abs(e) <= 128.0) {
        var base = x;
        var result = 1.0;
        for (var n = u32(abs(e)); n > 0u; n >>= 1u) {
            if ((n & 1u) == 1u) { result *= base; }
            base *= base;
        }
        return select(result, 1.0 / result, e < 0.0);
    }
    if (is_nan(e) || is_nan(x)) { return select(x + e, 1.0, x == 1.0); }
    if (x == 1.0 || (x == -1.0 && abs(e) > 3.0e38)) { return 1.0; }
    let size = select(exp2(e * log2(abs(x))), select(0.0, 1.0 / abs(x), e < 0.0), x == 0.0);
    let half = e * 0.5;
    let odd = whole && half != round(half) && abs(e) < 16777216.0;
    let undefined = x < 0.0 && x > -3.0e38 && !whole;
    return select(select(size, -size, x < 0.0 && odd), nan(), undefined);
}

fn nearest(x: f32) -> f32 { return round(x); }

fn lowest(a: f32, b: f32) -> f32 { return select(select(b, a, a < b), a, is_nan(a)); }

// kind: 0 exact, 1 towards minus infinity, 2 towards zero.
fn quotient(a: f32, b: f32, kind: f32) -> f32 {
    let q = a / b;
    if (kind == 0.0) { return q; }
    if (kind == 2.0) { return trunc(q); }
    if (abs(a) > 3.4028235e38 && b != 0.0) { return nan(); }
    let low = floor(q);
    let rest = select(fma(-low, b, a), a, low == 0.0);
    if (rest != 0.0 && (rest < 0.0) != (b < 0.0)) { return low - 1.0; }
    return select(low, low + 1.0, abs(rest) >= abs(b) && abs(q) < 1.0e30);
}

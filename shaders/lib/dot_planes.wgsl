// Products of octets in integers: the activations of a run become X = round(x * 2^20 / 2^e), 2^e the power of two at or below
// the largest of them, so that |X| < 2^21 and nothing is lost beside what f32 loses; X = 2^14 X2 + 2^7 X1 + X0 in bytes, and
// each byte meets the nibbles four at a time. A run with an infinity or a NaN gives NaN.
alias Dot = vec3<i32>;
struct Octet { even: u32, odd: u32 }
// Bytes of even and odd k of an octet, for each of the three planes.
var<private> even_now: array<vec3<u32>, MB * WORDS>;
var<private> odd_now: array<vec3<u32>, MB * WORDS>;
// What 8 times all X of a run makes, and 2^e / 2^20.
var<private> offset_now: array<i32, MB>;
var<private> unit_now: array<f32, MB>;

fn bytes_of(v: vec4<i32>) -> vec3<u32> {
    let low = vec4<u32>(v & vec4<i32>(127));
    let middle = vec4<u32>((v >> vec4<u32>(7u)) & vec4<i32>(127));
    let high = vec4<u32>((v >> vec4<u32>(14u)) & vec4<i32>(255));
    let place = vec4<u32>(1u, 1u << 8u, 1u << 16u, 1u << 24u);
    return vec3<u32>(dot(low, place), dot(middle, place), dot(high, place));
}

fn take_x(row0: u32, run: u32) {
    for (var m = 0u; m < MB; m++) { // unroll
        let base = row_start(row0 + m);
        var x: array<vec4<f32>, WORDS * 2u>;
        var most = 0u;
        for (var i = 0u; i < WORDS * 2u; i++) { // unroll
            x[i] = taken(m, base, run * WORDS * 8u + i * 4u);
            let size = bitcast<vec4<u32>>(x[i]) & vec4<u32>(0x7fffffffu);
            most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
        }
        let exponent = max(most & 0x7f800000u, 0x10000000u);
        let up = bitcast<f32>(0x7f000000u - exponent + (20u << 23u));
        // A NaN must not be a constant of the text.
        unit_now[m] = select(bitcast<f32>(exponent - (20u << 23u)), bitcast<f32>(0x7fc00000u | p.m), exponent == 0x7f800000u);
        var sum = vec3<i32>();
        for (var j = 0u; j < WORDS; j++) { // unroll
            let a = min(vec4<i32>(round(x[j * 2u] * up)), vec4<i32>(2097151));
            let b = min(vec4<i32>(round(x[j * 2u + 1u] * up)), vec4<i32>(2097151));
            let even = bytes_of(vec4<i32>(a.x, a.z, b.x, b.z));
            let odd = bytes_of(vec4<i32>(a.y, a.w, b.y, b.w));
            even_now[m * WORDS + j] = even;
            odd_now[m * WORDS + j] = odd;
            sum = add(sum, Octet(0x08080808u, 0x08080808u), even, odd);
        }
        offset_now[m] = whole(sum);
    }
}

fn add(sum: vec3<i32>, w: Octet, even: vec3<u32>, odd: vec3<u32>) -> vec3<i32> {
    return vec3<i32>(
        sum.x + dot4I8Packed(even.x, w.even) + dot4I8Packed(odd.x, w.odd),
        sum.y + dot4I8Packed(even.y, w.even) + dot4I8Packed(odd.y, w.odd),
        sum.z + dot4I8Packed(even.z, w.even) + dot4I8Packed(odd.z, w.odd),
    );
}
fn whole(d: vec3<i32>) -> i32 { return (d.z << 14u) + (d.y << 7u) + d.x; }

fn decode(w: u32) -> Octet { return Octet(w & 0x0f0f0f0fu, (w >> 4u) & 0x0f0f0f0fu); }
fn add_octet(sum: vec3<i32>, w: Octet, m: u32, j: u32) -> vec3<i32> {
    return add(sum, w, even_now[m * WORDS + j], odd_now[m * WORDS + j]);
}
fn scaled(dot: vec3<i32>, m: u32, scale: f32) -> f32 { return f32(whole(dot) - offset_now[m]) * (scale * unit_now[m]); }

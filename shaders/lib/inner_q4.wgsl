// Partial sums over every TEAM-th run of 32 k of 4-bit weights; k and the group are multiples of 32.
//
// A nibble n is never converted: placed in the mantissa of 1.0 it reads as 1 + n / 16 (bits 19 to 22) or 1 + n / 256
// (bits 15 to 18). With x scaled by 16 or 256 the product is n x plus an offset that does not depend on the weight; the
// offset and the zero point 8 leave the sum together, once per run.
const ONE: u32 = 0x3f800000u;

fn upper(w: u32) -> f32 { return bitcast<f32>((w & 0x00780000u) | ONE); }
fn lower(w: u32) -> f32 { return bitcast<f32>((w & 0x00078000u) | ONE); }

fn eight(part: ptr<function, array<Rows, NR>>, offset: ptr<function, Rows>, words: array<u32, NR>, at: Place, k: u32) {
    var x = x8(at, k);
    *offset += 24.0 * (x[0] + x[2] + x[4] + x[6] + x[7]) + 264.0 * (x[1] + x[3] + x[5]);
    x = array<Rows, 8>(x[0] * 16.0, x[1] * 256.0, x[2] * 16.0, x[3] * 256.0, x[4] * 16.0, x[5] * 256.0, x[6] * 16.0, x[7] * 16.0);
    for (var r = 0u; r < NR; r++) {
        let w = words[r];
        let first = x[0] * upper(w << 19u) + x[1] * lower(w << 11u) + x[2] * upper(w << 11u) + x[3] * lower(w << 3u);
        let second = x[4] * upper(w << 3u) + x[5] * lower(w >> 5u) + x[6] * upper(w >> 5u) + x[7] * upper(w >> 9u);
        (*part)[r] += first + second;
    }
}

fn accumulate(sums: ptr<function, array<Rows, NR>>, at: Place, member: u32) {
    let runs = p.k / 32u;
    for (var v = member; v < runs; v += TEAM) {
        var w: array<vec4<u32>, NR>;
        var scale: array<f32, NR>;
        for (var r = 0u; r < NR; r++) {
            let n = min(at.col + r, p.n - 1u);
            w[r] = weight[n * runs + v];
            scale[r] = load_scales((v * 32u / p.group) * p.scale_k + n * p.scale_n);
        }
        var part: array<Rows, NR>;
        var offset: Rows;
        var words: array<u32, NR>;
        for (var r = 0u; r < NR; r++) { words[r] = w[r].x; }
        eight(&part, &offset, words, at, v * 32u);
        for (var r = 0u; r < NR; r++) { words[r] = w[r].y; }
        eight(&part, &offset, words, at, v * 32u + 8u);
        for (var r = 0u; r < NR; r++) { words[r] = w[r].z; }
        eight(&part, &offset, words, at, v * 32u + 16u);
        for (var r = 0u; r < NR; r++) { words[r] = w[r].w; }
        eight(&part, &offset, words, at, v * 32u + 24u);
        for (var r = 0u; r < NR; r++) { (*sums)[r] += scale[r] * (part[r] - offset); }
    }
}

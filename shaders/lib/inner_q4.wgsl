// Partial sums over every TEAM-th run of 32 k of 4-bit weights; k and the group are multiples of 32.
//
// A nibble n is never converted: placed in the mantissa of 1.0 it reads as 1 + n / 16 (bits 19 to 22) or 1 + n / 256
// (bits 15 to 18). With x scaled by 16 or 256 the product is n x plus an offset that does not depend on the weight; the
// offset and the zero point 8 leave the sum together, once per run.
const ONE: u32 = 0x3f800000u;
const EVEN: vec4<f32> = vec4<f32>(16.0, 256.0, 16.0, 256.0);
const ODD: vec4<f32> = vec4<f32>(16.0, 256.0, 16.0, 16.0);

fn upper(w: u32) -> f32 { return bitcast<f32>((w & 0x00780000u) | ONE); }
fn lower(w: u32) -> f32 { return bitcast<f32>((w & 0x00078000u) | ONE); }

fn accumulate(sums: ptr<function, array<f32, COUNT>>, at: Place, member: u32) {
    let runs = p.k / 32u;
    for (var v = member; v < runs; v += TEAM) {
        var w: array<vec4<u32>, NR>;
        var scale: array<f32, NR>;
        for (var r = 0u; r < NR; r++) {
            let n = min(at.col + r, p.n - 1u);
            w[r] = weight[n * runs + v];
            scale[r] = load_scales((v * 32u / p.group) * p.scale_k + n * p.scale_n);
        }
        var part: array<f32, COUNT>;
        var offset: array<f32, MB>;
        for (var j = 0u; j < 4u; j++) {
            var first: array<vec4<f32>, NR>;
            var second: array<vec4<f32>, NR>;
            for (var r = 0u; r < NR; r++) {
                let word = w[r][j];
                first[r] = vec4<f32>(upper(word << 19u), lower(word << 11u), upper(word << 11u), lower(word << 3u));
                second[r] = vec4<f32>(upper(word << 3u), lower(word >> 5u), upper(word >> 5u), upper(word >> 9u));
            }
            for (var m = 0u; m < MB; m++) {
                let quad = (min(m, p.m - 1u) * p.k + v * 32u + j * 8u) / 4u;
                let a = load4_x(quad);
                let b = load4_x(quad + 1u);
                offset[m] += dot(a, EVEN + 8.0) + dot(b, ODD + 8.0);
                for (var r = 0u; r < NR; r++) {
                    part[m * NR + r] += dot(a * EVEN, first[r]) + dot(b * ODD, second[r]);
                }
            }
        }
        for (var m = 0u; m < MB; m++) {
            for (var r = 0u; r < NR; r++) { (*sums)[m * NR + r] += scale[r] * (part[m * NR + r] - offset[m]); }
        }
    }
}

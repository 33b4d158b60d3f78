// Partial sums over every TEAM-th run of 32 k of 4-bit weights; k and the group are multiples of 32.
//
// A nibble n is never converted: placed in the mantissa of 1.0 it reads as 1 + n / 16 (bits 19 to 22) or 1 + n / 256
// (bits 15 to 18), and subtracting what 8 would read as leaves (n - 8) / 16 or (n - 8) / 256, exactly.
const ONE: u32 = 0x3f800000u;

fn sixteenth(w: u32) -> f32 { return bitcast<f32>((w & 0x00780000u) | ONE) - 1.5; }
fn small(w: u32) -> f32 { return bitcast<f32>((w & 0x00078000u) | ONE) - 1.03125; }

// Adds sixteenths of the sums of eight k.
fn eight(part: ptr<function, array<Rows, NR>>, words: array<u32, NR>, at: Place, k: u32) {
    let x = x8(at, k);
    for (var r = 0u; r < NR; r++) {
        let w = words[r];
        let even = x[0] * sixteenth(w << 19u) + x[2] * sixteenth(w << 11u) + x[4] * sixteenth(w << 3u) + x[6] * sixteenth(w >> 5u);
        let odd = x[1] * small(w << 11u) + x[3] * small(w << 3u) + x[5] * small(w >> 5u);
        (*part)[r] += even + x[7] * sixteenth(w >> 9u) + 16.0 * odd;
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
            scale[r] = load_scales((v * 32u / p.group) * p.scale_k + n * p.scale_n) * 16.0;
        }
        var part: array<Rows, NR>;
        var words: array<u32, NR>;
        for (var r = 0u; r < NR; r++) { words[r] = w[r].x; }
        eight(&part, words, at, v * 32u);
        for (var r = 0u; r < NR; r++) { words[r] = w[r].y; }
        eight(&part, words, at, v * 32u + 8u);
        for (var r = 0u; r < NR; r++) { words[r] = w[r].z; }
        eight(&part, words, at, v * 32u + 16u);
        for (var r = 0u; r < NR; r++) { words[r] = w[r].w; }
        eight(&part, words, at, v * 32u + 24u);
        for (var r = 0u; r < NR; r++) { (*sums)[r] += scale[r] * part[r]; }
    }
}

// out[outer, a, l] = x[outer, l, a]: what lies side by side along a in x lies side by side along l in the result. Elements of BITS
// bits come and go in whole words, and turn around in a tile of DOWN elements along l by 32 words along a.
struct Params {
    outer: u32, rank: u32, offset: u32, slot: u32,
    pace: u32, across: u32, down: u32, stride: u32,
    pitch: u32, tiles_a: u32, tiles_l: u32, unused: u32,
    sizes: array<vec4<u32>, 2>,
    strides: array<array<vec4<u32>, 2>, 2>,
}

const ACROSS: u32 = 32u;
const WORDS: u32 = DOWN / PER;
const TURNS: u32 = (DOWN * ACROSS + WG - 1u) / WG;
// One word more than a row needs: a column of the tile lies in different banks.
var<workgroup> tile: array<array<u32, ACROSS + 1u>, DOWN>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group_index(wg, groups);
    let outer = index / (p.tiles_a * p.tiles_l);
    if (outer >= p.outer) { return; }
    let a0 = index % p.tiles_a * ACROSS * PER;
    let l0 = index / p.tiles_a % p.tiles_l * DOWN;
    let start = p.offset + u32(live(p.slot)) * p.pace + at(outer, 0u) + l0 * p.stride + a0 / PER;
    for (var turn = 0u; turn < TURNS; turn++) { // unroll
        let i = lane + turn * WG;
        let l = i / ACROSS;
        let w = i % ACROSS;
        if (l < DOWN && l0 + l < p.down && a0 + w * PER < p.across) { tile[l][w] = x[start + l * p.stride + w]; }
    }
    workgroupBarrier();
    let to = at(outer, 1u) + a0 * p.pitch + l0 / PER;
    for (var turn = 0u; turn < TURNS; turn++) { // unroll
        let i = lane + turn * WG;
        let a = i / WORDS;
        let l = i % WORDS * PER;
        if (a < ACROSS * PER && a0 + a < p.across && l0 + l < p.down) {
            var word = 0u;
            for (var e = 0u; e < PER; e++) { word |= part(tile[l + e][a / PER], a) << (BITS * e); } // unroll
            out[to + a * p.pitch + l / PER] = word;
        }
    }
}

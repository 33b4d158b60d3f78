// out[b, m, n] = alpha * sum_k x[b, m, k] * w[b, n, k] + beta * bias for few rows m: a team of SPLIT times LANES invocations
// shares NR columns n and MB rows, and splits their sums along k. `Rows` holds one number per row.
const COUNT: u32 = NR * MB;
const TEAM: u32 = LANES * SPLIT;
const TEAMS: u32 = WG / TEAM;

struct Place { b: u32, row: u32, col: u32 }
struct Octet { low: vec4<f32>, high: vec4<f32> }

fn place(tile: u32, index: u32) -> Place {
    let n = tile % p.tiles_n;
    let m = (tile / p.tiles_n) % p.tiles_m;
    return Place(tile / (p.tiles_n * p.tiles_m), m * MB, (n * TEAMS + index / TEAM) * NR);
}

fn deliver(at: Place, i: u32, total: f32) {
    let m = at.row + i / NR;
    let n = at.col + i % NR;
    if (at.b < p.batch && m < p.m && n < p.n) { store_out((at.b * p.m + m) * p.width + n, epilogue(m, n, total)); }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, invocation: Invocation) {
    let index = index_of(invocation);
    let at = place(group_index(wg, groups), index);
    var sums: array<Rows, NR>;
    if (at.b < p.batch && at.col < p.n) { accumulate(&sums, at, index % TEAM); }
    var flat: array<f32, COUNT>;
    for (var r = 0u; r < NR; r++) { for (var m = 0u; m < MB; m++) { flat[m * NR + r] = row_of(sums[r], m); } }
    finish(&flat, at, index);
}

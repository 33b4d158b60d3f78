// out[b, m, n] = alpha * sum_k x[b, m, k] * w[b, n, k] + beta * bias for at most MB rows m. A team of SPLIT times LANES
// invocations shares NR columns n and splits their sums along k.
const COUNT: u32 = NR * MB;
const TEAM: u32 = LANES * SPLIT;
const TEAMS: u32 = WG / TEAM;

struct Place { b: u32, col: u32 }

fn place(tile: u32, index: u32) -> Place {
    return Place(tile / p.tiles_n, ((tile % p.tiles_n) * TEAMS + index / TEAM) * NR);
}

fn deliver(at: Place, i: u32, total: f32) {
    let m = i / NR;
    let n = at.col + i % NR;
    if (at.b < p.batch && m < p.m && n < p.n) { store_out((at.b * p.m + m) * p.n + n, epilogue(m, n, total)); }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let at = place(group_index(wg, groups), index);
    var sums: array<f32, COUNT>;
    if (at.b < p.batch && at.col < p.n) { accumulate(&sums, at, index % TEAM); }
    finish(&sums, at, index);
}

// Sum and maximum of numbers or of vectors over a team, a power of two of invocations; each of them gets the result.
var<workgroup> partial: array<V, WG>;

fn reduce_add(v: V, lane: u32) -> V {
    partial[lane] = v;
    for (var half = TEAM / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (member_of(lane) < half) { partial[lane] += partial[lane + half * ACROSS]; }
    }
    return team_result(lane);
}

fn reduce_max(v: V, lane: u32) -> V {
    partial[lane] = v;
    for (var half = TEAM / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (member_of(lane) < half) { partial[lane] = max(partial[lane], partial[lane + half * ACROSS]); }
    }
    return team_result(lane);
}

fn team_result(lane: u32) -> V {
    workgroupBarrier();
    let result = partial[item_of(lane)];
    workgroupBarrier();
    return result;
}

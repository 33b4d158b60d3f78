// Sum and maximum over a workgroup of WG invocations; each of them gets the result. One invocation of each subgroup, of
// whatever size, leaves the subgroup's share, and every subgroup gathers all shares.
var<workgroup> partial: array<f32, WG>;

fn reduce_add(v: f32, lane: u32) -> f32 {
    let rank = subgroupExclusiveAdd(1u);
    let size = subgroupAdd(1u);
    let share = subgroupAdd(v);
    partial[lane] = select(0.0, share, rank == 0u);
    workgroupBarrier();
    var sum = 0.0;
    for (var i = rank; i < WG; i += size) { sum += partial[i]; }
    workgroupBarrier();
    return subgroupAdd(sum);
}

fn reduce_max(v: f32, lane: u32) -> f32 {
    let rank = subgroupExclusiveAdd(1u);
    let size = subgroupAdd(1u);
    partial[lane] = subgroupMax(v);
    workgroupBarrier();
    var most = partial[rank];
    for (var i = rank + size; i < WG; i += size) { most = max(most, partial[i]); }
    workgroupBarrier();
    return subgroupMax(most);
}

// Sum and maximum over a workgroup of WG invocations, a power of two; each of them gets the result.
var<workgroup> partial: array<f32, WG>;

fn reduce_add(v: f32, lane: u32) -> f32 {
    partial[lane] = v;
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { partial[lane] += partial[lane + half]; }
    }
    return shared_result();
}

fn reduce_max(v: f32, lane: u32) -> f32 {
    partial[lane] = v;
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { partial[lane] = max(partial[lane], partial[lane + half]); }
    }
    return shared_result();
}

fn shared_result() -> f32 {
    workgroupBarrier();
    let result = partial[0];
    workgroupBarrier();
    return result;
}

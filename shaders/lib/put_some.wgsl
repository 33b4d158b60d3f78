// As many neighbours as there are are stored one by one.
fn put(sums: ptr<function, array<f32, PER>>, at: u32, count: u32) {
    for (var e = 0u; e < PER; e++) { // unroll
        if (e < count) { store_out(at + e, (*sums)[e]); }
    }
}

// Neighbours are stored at once.
fn put(sums: ptr<function, array<f32, PER>>, at: u32, count: u32) {
    store4_out(at / 4u, vec4<f32>((*sums)[0], (*sums)[1], (*sums)[2], (*sums)[3]));
}

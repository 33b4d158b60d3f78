fn score(x: f32, s: u32, key: u32, mask0: u32) -> f32 { return x; }

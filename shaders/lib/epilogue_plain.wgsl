fn epilogue(m: u32, n: u32, sum: f32) -> f32 { return p.alpha * sum; }

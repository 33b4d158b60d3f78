fn epilogue(m: u32, n: u32, sum: f32) -> f32 { return p.alpha * sum + p.beta * load_bias(m * p.bias_m + n * p.bias_n); }

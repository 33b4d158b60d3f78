// By bits: compilers may take comparisons of a number with itself for granted.
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

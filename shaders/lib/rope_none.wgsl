// Nothing rotates.
fn partner(d: u32) -> u32 { return d; }
fn rotate(x: f32, other: f32, d: u32, row: u32) -> f32 { return x; }

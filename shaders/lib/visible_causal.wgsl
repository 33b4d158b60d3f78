// A row sees the keys up to its own position.
fn visible(s: u32, pos: u32) -> u32 { return min(pos + s + 1u, p.keys); }

// Every row sees every key.
fn visible(s: u32, pos: u32) -> u32 { return min(pos + p.seq, p.keys); }

// Between pixels, of which the first and the last stay where they are.
const BETWEEN: bool = true;
fn place(o: u32, ratio: f32) -> f32 { return f32(o) * ratio; }

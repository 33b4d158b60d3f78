// The pixel under the upper left corner.
const BETWEEN: bool = false;
fn place(o: u32, ratio: f32) -> f32 { return f32(o) * ratio; }

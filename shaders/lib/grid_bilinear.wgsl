fn interpolated(plane: u32, y: f32, x: f32) -> f32 {
    let at = vec2<f32>(padded(y, p.rows), padded(x, p.columns));
    let first = floor(at);
    let f = at - first;
    let above = (1.0 - f.y) * pixel(plane, first.x, first.y) + f.y * pixel(plane, first.x, first.y + 1.0);
    let below = (1.0 - f.y) * pixel(plane, first.x + 1.0, first.y) + f.y * pixel(plane, first.x + 1.0, first.y + 1.0);
    return (1.0 - f.x) * above + f.x * below;
}

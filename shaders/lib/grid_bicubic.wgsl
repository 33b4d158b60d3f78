// Weight of a pixel at this distance: cubic convolution with a = -0.75.
fn cubic(distance: f32) -> f32 {
    let d = abs(distance);
    if (d <= 1.0) { return (1.25 * d - 2.25) * d * d + 1.0; }
    return ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0;
}
fn interpolated(plane: u32, y: f32, x: f32) -> f32 {
    var sum = 0.0;
    for (var i = 0; i < 4; i++) {
        let row = floor(y) + f32(i - 1);
        for (var j = 0; j < 4; j++) {
            let column = floor(x) + f32(j - 1);
            sum += cubic(y - row) * cubic(x - column) * pixel(plane, padded(row, p.rows), padded(column, p.columns));
        }
    }
    return sum;
}

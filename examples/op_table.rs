//! Prints the operator table of the README as Markdown.

use executorch_webgpu::ops::TABLE;

fn main() {
    println!("| operator | types of the first operand | notes |\n|---|---|---|");
    for op in TABLE.iter().flat_map(|family| family.iter()) {
        let mut dtypes: Vec<String> = op.dtypes.iter().map(ToString::to_string).collect();
        if dtypes.is_empty() {
            dtypes.push("SymInt".into());
        }
        println!("| `{}` | {} | {} |", op.name, dtypes.join(", "), op.notes);
    }
}

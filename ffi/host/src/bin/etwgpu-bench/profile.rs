use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use etwgpu_host::{Llama, Result, Step};
use serde_json::{Value, json};

use crate::measure::{Run, WARM_UP};
use crate::report::milliseconds;

/// Device time of one call's steps, summed by operator and kernel, longest first.
pub struct Profile {
    run: Run,
    rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Eq)]
struct Row {
    operator: String,
    kernel: String,
    steps: usize,
    time: Duration,
}

impl Profile {
    /// Makes the call on a traced program, in which each step is a pass of its own.
    pub fn take(llama: &mut Llama, run: Run) -> Result<Self> {
        run.prepare(llama)?;
        for _ in 0..WARM_UP {
            run.call(llama, 0)?;
        }
        llama.take_steps()?;
        run.call(llama, 0)?;
        Ok(Self { run, rows: summed(&llama.take_steps()?) })
    }

    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "operator": row.operator,
                "kernel": row.kernel,
                "steps": row.steps,
                "milliseconds": milliseconds(row.time),
            })
        };
        json!({ "run": self.run.to_string(), "rows": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

/// A step's name is the operator, then the kernel with its constants, then the grid in angle brackets.
fn summed(steps: &[Step]) -> Vec<Row> {
    let mut sums: HashMap<(&str, &str), (usize, Duration)> = HashMap::new();
    for step in steps {
        let (operator, kernel) = step.name.split_once(' ').unwrap_or((&step.name, ""));
        let kernel = kernel.rsplit_once(" <").map_or(kernel, |(kernel, _)| kernel);
        let (count, time) = sums.entry((operator, kernel)).or_default();
        *count += 1;
        *time += step.time;
    }
    let row = |((operator, kernel), (steps, time)): ((&str, &str), _)| Row {
        operator: operator.to_owned(),
        kernel: kernel.to_owned(),
        steps,
        time,
    };
    let mut rows: Vec<Row> = sums.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| (&a.operator, &a.kernel).cmp(&(&b.operator, &b.kernel))));
    rows
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: Duration = self.rows.iter().map(|row| row.time).sum();
        let steps: usize = self.rows.iter().map(|row| row.steps).sum();
        writeln!(f, "profile of {}: {:.3} ms on the device in {steps} steps", self.run, milliseconds(total))?;
        if self.rows.is_empty() {
            return write!(f, "  no steps: the device has no timestamps, or no part of the program is delegated");
        }
        write!(f, "  share        ms  steps  operator, kernel")?;
        for Row { operator, kernel, steps, time } in &self.rows {
            let share = 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
            write!(f, "\n{share:6.1}% {:9.3} {steps:6}  {operator}, {kernel}", milliseconds(*time))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_summed_by_operator_and_kernel() {
        let names = ["mm gemm K=2 <8>", "add plain", "mm gemm K=2 <1x4>", "mm gemv K=2 <4>", "mm gemm K=2 <16"];
        let microseconds = [1, 20, 2, 5, 4];
        let step = |(name, &time): (&str, &u64)| Step { name: name.to_owned(), time: Duration::from_micros(time) };
        let rows = summed(&names.into_iter().zip(&microseconds).map(step).collect::<Vec<_>>());
        let row = |operator: &str, kernel: &str, steps, time| Row {
            operator: operator.to_owned(),
            kernel: kernel.to_owned(),
            steps,
            time: Duration::from_micros(time),
        };
        assert_eq!(rows, [row("add", "plain", 1, 20), row("mm", "gemm K=2", 3, 7), row("mm", "gemv K=2", 1, 5)]);
    }
}

//! A loaded program: device objects made from a plan, and calls on them.

mod convert;
mod host;
mod memory;
mod sequence;

use std::sync::Arc;

pub use host::{DataSource, HostTensor, HostValue, NoData, Outputs};

use crate::error::{Error, Result};
use crate::gpu::{Buffer, Copy, Gpu, Memory, MemoryKind, Profile, Staging, Timed};
use crate::graph::{DType, Dims, Tensor, Value, ValueId};
use crate::options::Options;
use crate::passes;
use crate::payload;
use crate::plan::Plan;
use crate::shader::{Elem, LIVE_VECTORS};
use memory::Arena;
use sequence::{Groups, Sequence, Workshop};

/// Input shapes whose dispatches are kept at the same time.
const SEQUENCES: usize = 4;

/// A program on a device.
pub struct Program {
    gpu: Arc<Gpu>,
    options: Options,
    plan: Plan,
    arena: Arena,
    groups: Groups,
    live: Buffer,
    staging: Staging,
    sequences: Vec<Sequence>,
    calls: u64,
}

impl Program {
    /// Loads a payload: everything is allocated, uploaded and compiled when this returns.
    pub fn load(payload: &[u8], data: &dyn DataSource, options: Options) -> Result<Program> {
        Program::load_with(payload, data, options, Profile::Full)
    }

    /// Loads a payload onto a device opened with `profile`.
    pub fn load_with(bytes: &[u8], data: &dyn DataSource, options: Options, profile: Profile) -> Result<Program> {
        let graph = payload::parse(bytes)?;
        let gpu = Gpu::open(options.adapter.as_deref(), profile)?;
        if let Some(why) = options.f16_accumulate_refusal(gpu.caps()) {
            log::warn!("enable_f16_accumulate_gemm: {why}");
        }
        let graph = passes::run(graph, gpu.caps(), &options)?;
        let plan = Plan::new(graph, gpu.caps(), &options)?;
        // Kernels are compiled while constants are copied.
        let kernels = plan.kernels();
        let (arena, compiled) = std::thread::scope(|scope| {
            let compile = || gpu.prepare(&kernels, options.pipeline_cache_dir.as_deref());
            let thread = std::thread::Builder::new().spawn_scoped(scope, compile);
            let arena = Arena::new(&gpu, &plan, bytes, data);
            let failed = |_| Err(Error::Internal("a compiling thread failed".into()));
            (arena, thread.map_or_else(|_| compile(), |thread| thread.join().unwrap_or_else(failed)))
        });
        let (arena, ()) = (arena?, compiled?);
        let live = gpu.buffer(MemoryKind::Parameters, (LIVE_VECTORS * 16) as u64, "live values")?;
        let staging = Staging::new(&gpu, plan.output_bytes())?;
        let steps = plan.probes.iter().map(|p| p.lowered.iter().map(|l| l.steps.len()).sum()).max().unwrap_or(0);
        let sequences = (0..SEQUENCES).map(|_| Sequence::new(&gpu, steps, &live)).collect::<Result<_>>()?;
        let groups = Groups::new();
        drop(kernels);
        let mut program = Program { gpu, options, plan, arena, groups, live, staging, sequences, calls: 0 };
        program.plan.products().iter().for_each(|line| log::info!("products: {line}"));
        program.warm_up()?;
        program.gpu.flush()?;
        log::debug!("{}", program.plan);
        Ok(program)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Bytes on the device by kind.
    pub fn memory(&self) -> Memory {
        let mut memory = self.arena.memory();
        memory.add(MemoryKind::Staging, self.staging.bytes());
        let params = self.sequences.iter().map(Sequence::bytes).sum::<u64>();
        memory.add(MemoryKind::Parameters, params + self.live.bytes());
        memory
    }

    /// Overwrites all activation and scratch memory with one byte. Results never depend on what was there; tests prove it.
    pub fn fill_activations(&self, byte: u8) -> Result<()> {
        self.arena.fill(&self.gpu, byte)
    }

    fn split(&mut self) -> (Workshop<'_>, &mut Vec<Sequence>, &Buffer) {
        let Program { gpu, options, plan, arena, groups, sequences, live, .. } = self;
        (Workshop { gpu, plan, arena, groups, options }, sequences, live)
    }

    /// Compiles every kernel and makes every bind group that the probed shapes need; the largest and the smallest shape
    /// keep their dispatches.
    fn warm_up(&mut self) -> Result<()> {
        let mut probes = std::mem::take(&mut self.plan.probes);
        for (index, probe) in probes.iter().enumerate().rev() {
            let (mut shop, sequences, live) = self.split();
            if let Some(sequence) = sequences.get_mut(index.min(SEQUENCES - 1)) {
                sequence.adopt(&mut shop, probe, live)?;
            }
        }
        probes.truncate(1);
        self.plan.probes = probes;
        Ok(())
    }

    /// Runs one call. `inputs` and `outputs` are in the order of the program; every output is complete on return. When it
    /// fails before the device starts, nothing has changed.
    pub fn execute(&mut self, inputs: &[HostValue<'_>], outputs: &mut dyn Outputs) -> Result<()> {
        self.gpu.check()?;
        let call = self.read_inputs(inputs)?;
        self.check_outputs(outputs)?;
        let index = self.sequence(&call)?;
        for (id, bytes) in &call.writes {
            self.gpu.write(self.arena.of(&self.plan, *id)?, 0, bytes)?;
        }
        self.run(index, outputs)
    }

    fn read_inputs<'a>(&self, inputs: &'a [HostValue<'a>]) -> Result<Call<'a>> {
        let ids = &self.plan.graph.inputs;
        if inputs.len() != ids.len() {
            let (found, expected) = (inputs.len(), ids.len());
            return Err(Error::shape("execute", format!("{found} inputs, the program takes {expected}")));
        }
        let mut call = Call { inputs, symints: vec![0; self.plan.graph.values.len()], ..Call::default() };
        for (index, (&id, input)) in ids.iter().zip(inputs).enumerate() {
            match self.plan.graph.value(id) {
                Value::Tensor(tensor) => {
                    let (dims, bytes) = read_tensor(index, tensor, input, self.gpu.caps().f16)?;
                    call.key.push(dims);
                    call.writes.push((id, bytes));
                }
                _ => {
                    call.key.push(Dims::default());
                    if let Some(slot) = call.symints.get_mut(id.index()) {
                        *slot = read_symint(index, input)?;
                    }
                }
            }
        }
        Ok(call)
    }

    /// Refuses outputs of a type that the results do not convert to.
    fn check_outputs(&self, outputs: &dyn Outputs) -> Result<()> {
        for (index, &id) in self.plan.graph.outputs.iter().enumerate() {
            if let Some(elem) = self.plan.elem(id, self.gpu.caps()) {
                output_type(index, elem, outputs)?;
            }
        }
        Ok(())
    }

    /// The sequence for this call, built if its shapes are new.
    fn sequence(&mut self, call: &Call<'_>) -> Result<usize> {
        self.calls += 1;
        let calls = self.calls;
        let known = self.sequences.iter().position(|s| s.key.as_deref() == Some(&call.key));
        let oldest = self.sequences.iter().enumerate().min_by_key(|(_, s)| s.used).map_or(0, |(i, _)| i);
        let index = known.unwrap_or(oldest);
        let inputs = self.plan.graph.inputs.clone();
        let host = |id: ValueId, element: usize| call.integer(&inputs, id, element);
        let symint_inputs: Vec<(usize, i32)> = inputs
            .iter()
            .filter(|id| matches!(self.plan.graph.value(**id), Value::SymInt))
            .map(|id| (id.index(), call.symints.get(id.index()).copied().unwrap_or(0)))
            .collect();
        let (mut shop, sequences, live) = self.split();
        let Some(sequence) = sequences.get_mut(index) else {
            return Err(Error::Internal("there is no sequence".into()));
        };
        sequence.used = calls;
        let key = sequence.key.take();
        if known.is_some() {
            for (id, number) in symint_inputs {
                if let Some(slot) = sequence.symints.get_mut(id) {
                    *slot = number;
                }
            }
            if sequence.refresh(&mut shop, &host)? {
                sequence.key = key;
                return Ok(index);
            }
        }
        sequence.build(&mut shop, &call.key, call.symints.clone(), &host, live)?;
        Ok(index)
    }

    fn run(&mut self, index: usize, outputs: &mut dyn Outputs) -> Result<()> {
        let missing = || Error::Internal("there is no sequence".into());
        let ready = self.sequences.get_mut(index).and_then(|sequence| sequence.ready.take());
        let sequence = self.sequences.get(index).ok_or_else(missing)?;
        self.gpu.write(&self.live, 0, &live_values(&self.plan, &sequence.symints))?;
        let (copies, parts, total) = self.output_copies(sequence)?;
        let timed = outputs.timed();
        let encode = |timed| self.gpu.encode(&sequence.dispatches, &sequence.common, &copies, &self.staging, timed);
        let work = match ready.filter(|_| timed == Timed::Nothing) {
            Some(encoded) => encoded,
            None => encode(timed)?,
        };
        let work = self.gpu.submit(work)?;
        // While the device works. Should it fail, the next call tries again and says why.
        let next = encode(Timed::Nothing).ok();
        let timings = self.gpu.finish(work, &self.staging, total, |bytes| {
            parts.iter().try_for_each(|part| deliver(part, bytes, outputs))
        })?;
        self.gpu.check()?;
        let names = match timed {
            Timed::Nothing => Vec::new(),
            Timed::Steps => sequence.names(&self.plan),
            Timed::From(_) => vec!["call".to_string()],
        };
        for (name, timing) in names.iter().zip(&timings) {
            outputs.step(name, timing.start, timing.end);
        }
        drop(copies);
        if let Some(sequence) = self.sequences.get_mut(index) {
            sequence.ready = next;
        }
        Ok(())
    }

    fn output_copies(&self, sequence: &Sequence) -> Result<(Vec<Copy<'_>>, Vec<Part>, u64)> {
        let (mut copies, mut parts, mut total) = (Vec::new(), Vec::new(), 0);
        for (index, &id) in self.plan.graph.outputs.iter().enumerate() {
            let dims = sequence.shapes.get(id.index()).copied().unwrap_or_default();
            match self.plan.elem(id, self.gpu.caps()) {
                Some(elem) => {
                    let bytes = (u64::from(dims.numel()) * u64::from(elem.size())).next_multiple_of(4);
                    copies.push(Copy { from: self.arena.of(&self.plan, id)?, to: total, bytes });
                    parts.push(Part { index, dims, elem: Some(elem), offset: total as usize, number: 0 });
                    total += bytes.next_multiple_of(16);
                }
                None => {
                    let number = sequence.symints.get(id.index()).copied().unwrap_or(0);
                    parts.push(Part { index, dims, elem: None, offset: 0, number });
                }
            }
        }
        Ok((copies, parts, total))
    }
}

/// One output of a call: a range of the staging buffer, or a number.
struct Part {
    index: usize,
    dims: Dims,
    elem: Option<Elem>,
    offset: usize,
    number: i32,
}

fn deliver(part: &Part, staged: &[u8], outputs: &mut dyn Outputs) -> Result<()> {
    let Some(elem) = part.elem else { return outputs.scalar(part.index, i64::from(part.number)) };
    let dtype = output_type(part.index, elem, outputs)?;
    let memory = outputs.tensor(part.index, &part.dims)?;
    let needed = part.dims.numel() as usize * dtype.size();
    let room = memory.len();
    let Some(memory) = memory.get_mut(..needed) else {
        let why = format!("it has room for {room} bytes, {dtype} {} needs {needed}", part.dims);
        return Err(Error::shape(format!("output {}", part.index), why));
    };
    convert::to_host(staged.get(part.offset..).unwrap_or_default(), elem, memory, dtype)
}

/// The type that the host expects of an output, if results of type `elem` convert to it.
fn output_type(index: usize, elem: Elem, outputs: &dyn Outputs) -> Result<DType> {
    let refuse = |why: String| Error::shape(format!("output {index}"), why);
    let dtype = outputs.dtype(index).ok_or_else(|| refuse("it is no tensor of a known type".into()))?;
    match convert::to_host(&[], elem, &mut [], dtype) {
        Ok(()) => Ok(dtype),
        Err(_) => Err(refuse(format!("it is {dtype}, but the program gives {elem:?}"))),
    }
}

/// The checked inputs of one call.
#[derive(Default)]
struct Call<'a> {
    inputs: &'a [HostValue<'a>],
    key: Vec<Dims>,
    writes: Vec<(ValueId, std::borrow::Cow<'a, [u8]>)>,
    symints: Vec<i32>,
}

impl Call<'_> {
    fn integer(&self, ids: &[ValueId], id: ValueId, element: usize) -> Result<i64> {
        let index = ids.iter().position(|&input| input == id);
        match index.and_then(|index| self.inputs.get(index)) {
            Some(HostValue::Tensor(tensor)) => tensor.integer(element),
            Some(HostValue::Int(number)) => Ok(*number),
            _ => Err(Error::shape("input", format!("%{} is no integer tensor", id.0))),
        }
    }
}

fn read_tensor<'a>(
    index: usize,
    tensor: &Tensor,
    input: &'a HostValue<'a>,
    f16: bool,
) -> Result<(Dims, std::borrow::Cow<'a, [u8]>)> {
    let refuse = |why: String| Error::shape(format!("input {index}"), why);
    let HostValue::Tensor(host) = input else {
        return Err(refuse(format!("it is no tensor, expected {} {}", tensor.dtype, tensor.max)));
    };
    let fits = host.dims.len() == tensor.max.len() && host.dims.iter().zip(tensor.max.iter()).all(|(n, max)| n <= max);
    if !fits {
        return Err(refuse(format!("its shape is {}, the program has room for {}", host.dims, tensor.max)));
    }
    let needed = host.dims.numel() as usize * host.dtype.size();
    let found = host.bytes.len();
    let bytes = host.bytes.get(..needed);
    let bytes = bytes.ok_or_else(|| refuse(format!("it has {found} bytes, {} needs {needed}", host.dims)))?;
    let elem = Elem::of(tensor.dtype, f16);
    if convert::to_device(&[], host.dtype, elem).is_err() {
        return Err(refuse(format!("it is {}, expected {}", host.dtype, tensor.dtype)));
    }
    let converted = convert::to_device(bytes, host.dtype, elem).map_err(|e| match e {
        Error::Shape { why, .. } => refuse(why),
        other => other,
    })?;
    Ok((host.dims, converted.map_or(std::borrow::Cow::Borrowed(bytes), std::borrow::Cow::Owned)))
}

fn read_symint(index: usize, input: &HostValue<'_>) -> Result<i32> {
    let refuse = |why: String| Error::shape(format!("input {index}"), why);
    let number = match input {
        HostValue::Int(number) => *number,
        HostValue::Tensor(tensor) if tensor.dims.numel() == 1 => tensor.integer(0)?,
        _ => return Err(refuse("expected an integer".into())),
    };
    i32::try_from(number).map_err(|_| refuse(format!("{number} does not fit 32 bits")))
}

fn live_values(plan: &Plan, symints: &[i32]) -> Vec<u8> {
    let count = plan.slots.iter().max().map_or(0, |&slot| slot as usize) + 1;
    let mut values = vec![0i32; count];
    for (&slot, &number) in plan.slots.iter().zip(symints) {
        if let Some(value) = values.get_mut(slot as usize).filter(|_| slot != 0) {
            *value = number;
        }
    }
    values.iter().flat_map(|n| n.to_le_bytes()).collect()
}

//! What a `.pte` delegates: the parts of ExecuTorch's program that say so. Nothing in the bytes is trusted.

use std::collections::HashSet;

type Result<T> = std::result::Result<T, String>;

/// Backend id that the partitioners write.
const BACKEND: &str = "VulkanBackend";
/// Delegates of a program, and compile specs of a delegate: far more than any has. Tables may be shared, so that a small file
/// could name endlessly many.
const MOST: usize = 1024;

/// One delegate of one method.
pub struct Delegate<'a> {
    pub method: &'a str,
    pub backend: &'a str,
    pub payload: &'a [u8],
    pub specs: Vec<(&'a str, &'a [u8])>,
}

impl Delegate<'_> {
    /// True when the payload is for this delegate.
    pub fn is_ours(&self) -> bool {
        self.backend == BACKEND
    }
}

/// A program: its delegates in order, and the keys of the named data in the same file.
pub struct Program<'a> {
    pub delegates: Vec<Delegate<'a>>,
    pub keys: HashSet<&'a str>,
}

impl<'a> Program<'a> {
    /// Reads a `.pte`: a FlatBuffer `Program`, and segments at the offset that the extended header names.
    pub fn parse(file: &'a [u8]) -> Result<Program<'a>> {
        if file.get(4..6) != Some(b"ET") {
            let found = String::from_utf8_lossy(file.get(4..8).unwrap_or_default());
            return Err(format!("file identifier is {found:?}, expected \"ET\" and a version"));
        }
        let segments = match file.get(8..12) {
            Some(b"eh00") => number(file, 24, 8)?,
            _ => 0,
        };
        let program = Table { bytes: file, at: pointer(file, 0)? };
        let mut delegates = Vec::new();
        for plan in program.tables(1)? {
            let plan = plan?;
            for delegate in plan.tables(7)? {
                if delegates.len() == MOST {
                    return Err(format!("it has more than {MOST} delegates"));
                }
                delegates.push(Delegate::read(&program, segments, plan.text(0)?, &delegate?)?);
            }
        }
        let keys = program.tables(7)?.map(|named| named?.text(0)).collect::<Result<_>>()?;
        Ok(Program { delegates, keys })
    }
}

impl<'a> Delegate<'a> {
    fn read(program: &Table<'a>, segments: usize, method: &'a str, delegate: &Table<'a>) -> Result<Delegate<'a>> {
        let processed = delegate.table(1)?.ok_or("a delegate has no payload")?;
        let (place, index) = (processed.number(0, 1)?, processed.number(1, 4)?);
        let entry = |field| -> Result<Table<'a>> {
            let missing = || format!("a delegate's payload is entry {index}, which is missing");
            program.tables(field)?.nth(index).ok_or_else(missing)?
        };
        let payload = match place {
            0 => entry(3)?.vector(0, 1)?,
            1 => {
                let segment = entry(4)?;
                slice(program.bytes, segments.saturating_add(segment.number(0, 8)?), segment.number(1, 8)?)?
            }
            other => return Err(format!("a delegate's payload is in place {other}, expected 0 or 1")),
        };
        let specs = delegate.tables(2)?.take(MOST);
        let specs = specs.map(|spec| spec.and_then(|spec| Ok((spec.text(0)?, spec.vector(1, 1)?))));
        Ok(Delegate { method, backend: delegate.text(0)?, payload, specs: specs.collect::<Result<_>>()? })
    }
}

/// A FlatBuffer table; fields are numbered as the schema declares them.
#[derive(Clone, Copy)]
struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// Where a field lies; `None` when it has its default.
    fn field(&self, id: usize) -> Result<Option<usize>> {
        let back = number(self.bytes, self.at, 4)? as u32 as i32;
        let vtable = self.at.checked_add_signed(-(back as isize)).ok_or("a table lies outside the file")?;
        let slot = 4 + 2 * id;
        if slot + 2 > number(self.bytes, vtable, 2)? {
            return Ok(None);
        }
        let offset = number(self.bytes, vtable.saturating_add(slot), 2)?;
        Ok(Some(self.at + offset).filter(|_| offset != 0))
    }

    fn number(&self, id: usize, size: usize) -> Result<usize> {
        self.field(id)?.map_or(Ok(0), |at| number(self.bytes, at, size))
    }

    fn table(&self, id: usize) -> Result<Option<Table<'a>>> {
        self.field(id)?.map(|at| Ok(Table { bytes: self.bytes, at: pointer(self.bytes, at)? })).transpose()
    }

    /// The elements of a vector, of `size` bytes each; none when it is missing.
    fn vector(&self, id: usize, size: usize) -> Result<&'a [u8]> {
        let Some(at) = self.field(id)? else { return Ok(&[]) };
        let start = pointer(self.bytes, at)?;
        let count = number(self.bytes, start, 4)?;
        slice(self.bytes, start + 4, count.saturating_mul(size))
    }

    fn text(&self, id: usize) -> Result<&'a str> {
        let bytes = self.vector(id, 1)?;
        // Names may overlap: long ones would be read as often as there are names.
        if bytes.len() > MOST {
            return Err(format!("a name has {} bytes, expected at most {MOST}", bytes.len()));
        }
        std::str::from_utf8(bytes).map_err(|error| format!("a name is not UTF-8: {error}"))
    }

    fn tables(&self, id: usize) -> Result<impl Iterator<Item = Result<Table<'a>>> + use<'a>> {
        let bytes = self.bytes;
        let count = self.vector(id, 4)?.len() / 4;
        let first = self.field(id)?.map_or(Ok(0), |at| pointer(bytes, at))? + 4;
        Ok((0..count).map(move |n| Ok(Table { bytes, at: pointer(bytes, first + 4 * n)? })))
    }
}

fn slice(bytes: &[u8], start: usize, length: usize) -> Result<&[u8]> {
    let found = start.checked_add(length).and_then(|end| bytes.get(start..end));
    found.ok_or_else(|| format!("{length} bytes at {start} pass the end at {}", bytes.len()))
}

/// A little-endian number of `size` bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Result<usize> {
    let value = slice(bytes, at, size)?.iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte));
    usize::try_from(value).map_err(|_| format!("{value} is not addressable"))
}

/// Where the offset at `at` leads.
fn pointer(bytes: &[u8], at: usize) -> Result<usize> {
    Ok(at.saturating_add(number(bytes, at, 4)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use executorch_webgpu::payload;

    const LLAMA: &[u8] = include_bytes!("../../../tests/fixtures/tiny_llama.pte");

    #[test]
    fn the_delegate_of_an_exported_program_is_found() {
        let program = Program::parse(LLAMA).unwrap();
        let [delegate] = &program.delegates[..] else { panic!("{} delegates", program.delegates.len()) };
        assert_eq!((delegate.method, delegate.is_ours()), ("forward", true));
        let graph = payload::parse(delegate.payload).unwrap();
        assert!(graph.nodes.len() > 10 && !program.keys.is_empty());
    }

    #[test]
    fn damaged_programs_are_refused_or_read_without_a_panic() {
        let mut bytes = LLAMA.to_vec();
        for at in 0..number(LLAMA, 16, 8).unwrap() {
            for value in [0, 0x7F, 0x80, 0xFF] {
                bytes[at] = value;
                drop(Program::parse(&bytes));
            }
            bytes[at] = LLAMA[at];
            assert!(at > 600 || Program::parse(&LLAMA[..at]).is_err(), "cut at {at}");
        }
    }
}

//! Archives in pieces.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::write;
use crate::Result;
use crate::process;

/// Bytes of one piece at most.
const PIECE_BYTES: usize = 12 << 20;
/// The dictionary reaches back as far as from one program of a part to another with the same weights.
const COMPRESS: &str = "xz --lzma2=preset=9,dict=128MiB -T1";

/// Files that are packed together: `NAME.tar.xz.01of03` and so on.
pub struct Part {
    /// What the pieces are called.
    pub name: &'static str,
    /// Folders below the staging folder.
    pub contents: Vec<String>,
}

impl Part {
    /// Packs the part into pieces in `to`; returns lines that tell the sizes.
    pub fn pack(&self, stage: &Path, to: &Path) -> Result<Vec<String>> {
        let archive = to.join(format!("{}.tar.xz", self.name));
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
        tar.args(["--use-compress-program", COMPRESS, "-C"]).arg(stage).arg("-cf").arg(&archive).args(&self.contents);
        process::run(&mut tar)?;
        let packed = fs::read(&archive).map_err(|error| format!("{} is unreadable: {error}", archive.display()))?;
        fs::remove_file(&archive).map_err(|error| format!("{} cannot be removed: {error}", archive.display()))?;
        let count = packed.len().div_ceil(PIECE_BYTES);
        let mut lines = Vec::new();
        for folder in &self.contents {
            list(stage, &stage.join(folder), &mut lines)?;
        }
        for (index, piece) in packed.chunks(PIECE_BYTES).enumerate() {
            let name = format!("{}.tar.xz.{:02}of{count:02}", self.name, index + 1);
            write(&to.join(&name), piece)?;
            lines.push(format!("{} packed in {name}", size(piece.len() as u64)));
        }
        Ok(lines)
    }
}

fn list(stage: &Path, folder: &Path, lines: &mut Vec<String>) -> Result {
    let entries = fs::read_dir(folder).map_err(|error| format!("{} is unreadable: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            list(stage, &path, lines)?;
        } else {
            let bytes = path.metadata().map_or(0, |metadata| metadata.len());
            lines.push(format!("{} {}", size(bytes), path.strip_prefix(stage).unwrap_or(&path).display()));
        }
    }
    Ok(())
}

fn size(bytes: u64) -> String {
    format!("{:8.2} MiB", bytes as f64 / f64::from(1 << 20))
}

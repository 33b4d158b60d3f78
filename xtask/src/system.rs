//! System packages that the build and the tests need, installed on Debian and Ubuntu.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::process::{heading, output, run, succeeds};

struct Package {
    name: &'static str,
    why: &'static str,
}

/// Installs what is missing, after saying what and why.
pub fn install_missing() -> Result {
    let missing = missing_packages();
    if missing.is_empty() {
        return Ok(());
    }
    heading("system packages");
    for package in &missing {
        println!("{}: {}", package.name, package.why);
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let install = format!("apt-get install -y --no-install-recommends {}", names.join(" "));
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(format!("this system has no apt-get; install the equivalents of {} by hand", names.join(", ")));
    }
    let is_root = output(Command::new("id").arg("-u"))?.trim() == "0";
    if !is_root && !succeeds(Command::new("sudo").arg("--version")) {
        return Err(format!("sudo is missing; run as root: apt-get update && {install}"));
    }
    for line in ["apt-get update", &install] {
        let prefix = if is_root { "" } else { "sudo " };
        println!("running: {prefix}{line}");
        run(&mut shell_words(&format!("{prefix}env DEBIAN_FRONTEND=noninteractive {line}")))?;
    }
    Ok(())
}

fn shell_words(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

fn missing_packages() -> Vec<Package> {
    let needs = [
        (!has_compiler(), Package { name: "g++", why: "compiles the C++ half of the delegate" }),
        (!has_venv(), Package { name: "python3-venv", why: "creates the Python environment for ExecuTorch" }),
        (
            vulkan_loader().is_none(),
            Package { name: "libvulkan1", why: "the Vulkan loader, through which the GPU is used" },
        ),
        (
            !has_vulkan_driver(),
            Package {
                name: "mesa-vulkan-drivers",
                why: "no GPU driver was found; this one runs on the CPU (lavapipe)",
            },
        ),
    ];
    needs.into_iter().filter_map(|(missing, package)| missing.then_some(package)).collect()
}

fn has_compiler() -> bool {
    succeeds(Command::new("c++").arg("--version"))
}

fn has_venv() -> bool {
    super::setup::find_python()
        .is_ok_and(|python| succeeds(Command::new(python).args(["-c", "import ensurepip, venv"])))
}

/// The Vulkan loader: where ldconfig or `LD_LIBRARY_PATH` has it.
pub fn vulkan_loader() -> Option<PathBuf> {
    let known = output(Command::new("/sbin/ldconfig").arg("-p")).unwrap_or_default();
    let lines = known.lines().filter(|line| line.trim_start().starts_with("libvulkan.so.1 "));
    let listed = lines.filter_map(|line| line.split_once(" => ")).map(|(_, path)| PathBuf::from(path));
    let named = named_paths("LD_LIBRARY_PATH").map(|folder| Path::new(&folder).join("libvulkan.so.1"));
    listed.chain(named).find(|path| path.exists())
}

fn has_vulkan_driver() -> bool {
    let named = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].into_iter().flat_map(named_paths);
    let home = std::env::var("HOME").map(|home| format!("{home}/.local/share/vulkan/icd.d"));
    let folders = ["/usr/share", "/usr/local/share", "/etc"].map(|base| format!("{base}/vulkan/icd.d"));
    let mut folders = folders.into_iter().chain(home);
    named.into_iter().any(|file| Path::new(&file).exists()) || folders.any(|folder| holds_a_driver(Path::new(&folder)))
}

fn holds_a_driver(folder: &Path) -> bool {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
}

fn named_paths(variable: &str) -> impl Iterator<Item = String> + use<> {
    let value = std::env::var(variable).unwrap_or_default();
    value.split(':').filter(|path| !path.is_empty()).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

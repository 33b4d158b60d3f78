use executorch_webgpu::gpu::Profile;
use executorch_webgpu::options::Options;

use crate::child;
use crate::common::Data;
use crate::common::model::Running;
use crate::seeds;

fn run(running: &mut Running, seq: u32, pos: i64) -> Vec<Data> {
    let inputs = seeds::decoder_inputs(seq, pos);
    running.run(&inputs.iter().collect::<Vec<_>>()).unwrap()
}

#[test]
fn two_hundred_calls_give_the_same_bytes() {
    for profile in [Profile::Full, Profile::Minimal] {
        let mut running = seeds::decoder().load_with(Options::default(), profile).unwrap();
        let first = run(&mut running, 4, 0);
        for _ in 0..200 {
            assert_eq!(run(&mut running, 4, 0), first);
        }
    }
}

#[test]
fn what_memory_held_before_does_not_matter() {
    for profile in [Profile::Full, Profile::Minimal] {
        let results = [0x00, 0xFF, 0x7F].map(|byte| {
            let mut running = seeds::decoder().load_with(Options::default(), profile).unwrap();
            let calls = [(4, 0), (1, 4), (3, 5), (1, 8), (4, 9)];
            calls.map(|(seq, pos)| {
                running.program.fill_activations(byte).unwrap();
                run(&mut running, seq, pos)
            })
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
    }
}

#[test]
fn lengths_shrink_and_grow_again() {
    let mut running = seeds::decoder().load().unwrap();
    let first: Vec<Vec<Data>> = (1..=4).map(|seq| run(&mut running, seq, 0)).collect();
    for seq in [4, 1, 3, 2, 4, 1, 1, 4] {
        assert_eq!(run(&mut running, seq, 0), first[seq as usize - 1]);
    }
}

#[test]
fn a_fresh_process_gives_the_same_bytes() {
    let mut running = seeds::decoder().load().unwrap();
    let line = format!("result {:?}", run(&mut running, 4, 0)[0].bytes());
    if child::is_child() {
        println!("{line}");
        return;
    }
    let output = child::output("replay::a_fresh_process_gives_the_same_bytes", &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains(&line));
}

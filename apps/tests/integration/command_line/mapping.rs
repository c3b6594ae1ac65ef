//! Mapping files on the command line.

use super::*;

/// The circuit's file of this name, in the sources.
fn of_circuit(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings").join(name).display().to_string()
}

#[test]
fn a_circuit_is_simulated_as_files_say() {
    for name in ["circuit-cpu.toml", "circuit-nodes.toml"] {
        let report = prints(&format!("{SMALL_CIRCUIT} --mapping {}", of_circuit(name)));
        assert!(value(&report, "largest relative error").ends_with("(at most 1e-9 is right)"), "{report}");
    }
}

#[test]
fn what_a_file_says_in_vain_is_a_warning() {
    let run = maniple(&format!("{SMALL_CIRCUIT} --mapping {}", of_circuit("circuit-zero-copy.toml")));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("WARN mapping file: [[data]] 1: the machine has no framebuffer memory"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("has met no"), "{}", run.stderr);
    let misspelt = file("misspelt_task.toml", "[[task]]\nname = 'update_voltage'\npriority = 1\n");
    let run = maniple(&format!("{SMALL_CIRCUIT} --mapping {}", misspelt.display()));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let told = "[[task]] 1: the program declares no task `update_voltage`; did you mean `update_voltages`?";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    assert!(run.stderr.contains("[[task]] 1 has met no task; there was no task `update_voltage`"), "{}", run.stderr);
}

#[test]
fn a_mistake_in_a_file_ends_the_program_before_it_begins() {
    let mistake = file("mistake.toml", "[[task]]\nname = 'update_voltages'\n\nprioity = 1\n");
    let told = format!(
        "{}, line 4, column 1: there is no key `prioity` in [[task]]; did you mean `priority`?",
        mistake.display()
    );
    fails(&format!("{SMALL_CIRCUIT} --mapping {}", mistake.display()), 2, &told);
    fails(&format!("info --mapping {}", mistake.display()), 2, &told);
    fails(
        &format!("{SMALL_CIRCUIT} --mapping /there/is/none.toml"),
        2,
        "/there/is/none.toml: cannot read the mapping file: ",
    );
}

#[test]
fn information_explains_a_file_in_words() {
    let words = prints(&format!("info --mapping {}", of_circuit("circuit-zero-copy.toml")));
    for line in [
        "[[data]] 1  data of region `Wire`",
        "in framebuffer memory",
        "data of region `Node` in pieces of partition `shared` or `ghost`",
        "one instance for the whole region",
        "come from framebuffer memory, then zero-copy memory first",
        "[[data]] 1: the machine has no framebuffer memory",
    ] {
        assert!(words.contains(line), "no `{line}` in\n{words}");
    }
}

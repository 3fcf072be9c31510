use std::fs;
use std::thread;

use crate::lectern::{ANSWER, Lectern, QUESTION};

#[test]
fn damaged_settings_are_named_by_line_and_left_alone() {
    let lectern = Lectern::new();
    let broken = "{\n  \"version\": 1,\n  \"models\": [}\n";
    let path = lectern.write("settings.json", broken);
    for args in [&["ask", "hi"][..], &["models", "list"], &["models", "use", "starter"]] {
        let ran = lectern.run(args);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.err.contains("settings.json, line 3") && ran.err.contains("hint: Mend the file"),
            "{ran:?}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    }
}

#[test]
fn a_damaged_file_of_conversations_is_named_and_left_alone() {
    let lectern = Lectern::new();
    let garbage = "this is no database ".repeat(100);
    let path = lectern.write("conversations.sqlite", &garbage);
    let ran = lectern.run(["ask", "hi"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("conversations.sqlite") && ran.err.contains("hint: "), "{ran:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), garbage);
}

#[test]
fn processes_share_a_home() {
    let lectern = Lectern::new();
    thread::scope(|scope| {
        let asked: Vec<_> = (0..3).map(|_| scope.spawn(|| lectern.ask([QUESTION]).answer())).collect();
        for answer in asked {
            assert!(answer.join().unwrap().contains(ANSWER));
        }
    });
}

#[cfg(unix)]
#[test]
fn a_home_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;

    let lectern = Lectern::new();
    let home = lectern.home().join("deep/home");
    assert_eq!(
        lectern.run(["models".as_ref(), "list".as_ref(), "--home".as_ref(), home.as_os_str()]).code,
        Some(0)
    );
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
}

use std::io::Write;

use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

fn write(folder: &Path, entries: &[(&str, &[u8], Option<u32>)]) -> PathBuf {
    let path = folder.join("x.mcpb");
    let mut zip = ZipWriter::new(File::create(&path).unwrap());
    for (name, bytes, mode) in entries {
        let mut options = SimpleFileOptions::default();
        if let Some(mode) = mode {
            options = options.unix_permissions(*mode);
        }
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    path
}

fn bundle(folder: &Path, manifest: &Value) -> Result<Bundle, BundleError> {
    Bundle::open(&write(folder, &[("manifest.json", manifest.to_string().as_bytes(), None)]))
}

fn manifest(server: Value) -> Value {
    json!({"manifest_version": "0.2", "name": "notes", "version": "1.0.0", "server": server, "user_config": {
        "key": {"type": "string", "title": "Key", "description": "of the service", "sensitive": true, "required": true},
        "dirs": {"type": "directory", "title": "Folders", "multiple": true, "default": ["${HOME}/a", "/b"]},
        "verbose": {"type": "boolean", "title": "Verbose", "default": false},
        "note": {"type": "string", "title": "Note"},
    }})
}

#[test]
fn a_manifest_becomes_a_server_with_its_questions() {
    let folder = tempfile::tempdir().unwrap();
    let server = json!({"type": "node", "entry_point": "server/index.js", "mcp_config": {
        "command": "node", "args": ["${__dirname}/server/index.js", "${user_config.dirs}", "--verbose=${user_config.verbose}"],
        "env": {"KEY": "${user_config.key}", "PLACE": "${HOME}${/}x"},
        "platform_overrides": {(platform()): {"env": {"HERE": "1"}}, "plan9": {"command": "rc"}}}});
    let bundle = bundle(folder.path(), &manifest(server)).unwrap();
    let read = bundle.server(Path::new("/b/notes"), Path::new("/home/me")).unwrap();
    let config = &read.servers[0].config;
    let program = config.program().unwrap();
    assert_eq!((config.id.as_str(), program.command.as_str()), ("notes", "node"));
    assert_eq!(
        program.args,
        ["/b/notes/server/index.js", "${input:notes/dirs}", "--verbose=${input:notes/verbose}"]
    );
    let env: Vec<(&str, &str)> =
        program.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let place = format!("/home/me{}x", std::path::MAIN_SEPARATOR);
    assert_eq!(env, [("HERE", "1"), ("KEY", "${input:notes/key}"), ("PLACE", place.as_str())]);
    let inputs: Vec<_> =
        read.inputs.iter().map(|i| (i.id.as_str(), i.password, i.multiple, i.default.as_deref())).collect();
    assert_eq!(
        inputs,
        [
            ("notes/key", true, false, None),
            ("notes/dirs", false, true, Some("/home/me/a\n/b")),
            ("notes/verbose", false, false, Some("false")),
            ("notes/note", false, false, Some("")),
        ]
    );
}

#[test]
fn what_the_kind_says_is_run_when_nothing_else_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, command, args) in [
        ("uv", "uv", vec!["run", "--directory", "/d", "src/main.py"]),
        ("python", "python3", vec!["/d/src/main.py"]),
        ("binary", "/d/src/main.py", vec![]),
    ] {
        let manifest = json!({"dxt_version": "0.1", "name": "x", "server": {"type": kind, "entry_point": "src/main.py"}});
        let read =
            bundle(folder.path(), &manifest).unwrap().server(Path::new("/d"), Path::new("/h")).unwrap();
        let program = read.servers[0].config.program().unwrap();
        assert_eq!(
            (program.command.as_str(), program.args.clone()),
            (command, args.into_iter().map(String::from).collect())
        );
    }
}

#[test]
fn what_is_no_bundle_for_us_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused =
        |manifest: Value| bundle(folder.path(), &manifest).err().map(|error| error.to_string()).unwrap();
    assert_eq!(refused(json!({"name": "x"})), "`manifest.json`: version unnamed is not known");
    assert_eq!(
        refused(json!({"manifest_version": "1.0", "name": "x"})),
        "`manifest.json`: version 1.0 is not known"
    );
    assert_eq!(refused(json!({"manifest_version": "0.4"})), "`manifest.json`: it has no name");
    assert_eq!(refused(json!([])), "`manifest.json`: not an object");
    let elsewhere =
        json!({"manifest_version": "0.3", "name": "x", "compatibility": {"platforms": ["plan9"]}});
    assert_eq!(refused(elsewhere), "it is made for plan9, not for this system");
    let text = folder.path().join("text");
    fs::write(&text, "no zip").unwrap();
    assert!(matches!(Bundle::open(&text), Err(BundleError::Zip(_))));
    assert!(!Bundle::is_bundle(&text));
    assert!(Bundle::open(&write(folder.path(), &[("readme", b"", None)])).is_err());
}

#[test]
fn files_are_unpacked_below_the_folder_only() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = manifest(json!({"type": "binary", "entry_point": "bin/x"})).to_string();
    let entries: [(&str, &[u8], Option<u32>); 3] = [
        ("manifest.json", manifest.as_bytes(), None),
        ("bin/x", b"#!/bin/sh\n", Some(0o644)),
        ("lib/deep/y", b"data", Some(0o644)),
    ];
    let bundle = Bundle::open(&write(folder.path(), &entries)).unwrap();
    let target = folder.path().join("out");
    bundle.unpack(&target).unwrap();
    assert_eq!(fs::read(target.join("lib/deep/y")).unwrap(), b"data");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| fs::metadata(target.join(name)).unwrap().permissions().mode() & 0o111;
        assert!(mode("bin/x") != 0 && mode("lib/deep/y") == 0);
    }
    for name in ["../evil", "a/../../evil", "/evil", "a\\..\\evil", "C:evil", "./evil"] {
        let entries: [(&str, &[u8], Option<u32>); 2] =
            [("manifest.json", manifest.as_bytes(), None), (name, b"evil", None)];
        let bundle = Bundle::open(&write(folder.path(), &entries)).unwrap();
        let error = bundle.unpack(&folder.path().join("bad").join("bad")).unwrap_err();
        assert!(matches!(error, BundleError::Escape(_)), "{name}: {error}");
        fs::remove_dir_all(folder.path().join("bad")).unwrap();
    }
    assert!(!folder.path().join("evil").exists());
}

#[test]
fn a_link_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mcpb");
    let manifest = manifest(json!({"type": "node", "entry_point": "x"})).to_string();
    let mut zip = ZipWriter::new(File::create(&path).unwrap());
    zip.start_file("manifest.json", SimpleFileOptions::default()).unwrap();
    zip.write_all(manifest.as_bytes()).unwrap();
    zip.add_symlink("out", "/etc", SimpleFileOptions::default()).unwrap();
    zip.finish().unwrap();
    let error = Bundle::open(&path).unwrap().unpack(&folder.path().join("out")).unwrap_err();
    assert!(matches!(error, BundleError::Escape(_)), "{error}");
}

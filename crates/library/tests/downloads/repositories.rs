//! Repositories of the hub: their lists, what is chosen from them, who is told the token.

use super::stage::sha256;
use super::*;

#[tokio::test]
async fn the_token_goes_to_the_hub_alone() {
    let (folder, hub, elsewhere) = (tempfile::tempdir().unwrap(), Stage::open().await, Stage::open().await);
    let bytes = model(1, 300_000);
    hub.repository("o/r", &[("m.gguf", &bytes)]);
    elsewhere.hold("/cdn/m.gguf", &bytes, []);
    let list = "/api/models/o/r/tree/main?recursive=true";
    hub.change(list, |held| held.acts = vec![Act::Status(401, vec![], "".into())].into());
    let there = vec![("Location", format!("{}/cdn/m.gguf", elsewhere.address))];
    let gated = vec![Act::Status(403, vec![], "".into()), Act::Status(302, there, "".into())];
    hub.change("/o/r/resolve/main/m.gguf", |held| held.acts = gated.into());
    let downloads = downloads(folder.path(), &hub.address, Some("hf_secret"));
    let begun = start(&downloads, "o/r").await;
    assert_whole(folder.path(), &ended(&downloads, &begun.id).await);
    let tokens: Vec<_> =
        hub.asked().iter().map(|asked| asked.headers.get("authorization").cloned()).collect();
    let bearer = Some("Bearer hf_secret".to_owned());
    assert_eq!(tokens, [None, bearer.clone(), None, bearer]);
    assert!(elsewhere.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
}

#[tokio::test]
async fn the_hubs_word_about_a_file_is_held_against_what_came() {
    let (folder, hub, elsewhere) = (tempfile::tempdir().unwrap(), Stage::open().await, Stage::open().await);
    elsewhere.hold("/cdn", &model(2, 300_000), []);
    let to = vec![
        ("Location", format!("{}/cdn", elsewhere.address)),
        ("X-Linked-Etag", format!("\"{}\"", sha256(&model(1, 300_000)))),
        ("X-Linked-Size", "300000".to_owned()),
    ];
    hub.repository("o/r", &[("m.gguf", &model(1, 300_000))]);
    hub.change("/o/r/resolve/main/m.gguf", |held| held.acts = vec![Act::Status(302, to, "".into())].into());
    let downloads = downloads(folder.path(), &hub.address, None);
    let begun = start(&downloads, "o/r").await;
    assert_eq!(fault(&ended(&downloads, &begun.id).await).code(), "bad_checksum");
}

#[tokio::test]
async fn a_gated_repository_says_where_its_licence_is() {
    let (folder, hub) = (tempfile::tempdir().unwrap(), Stage::open().await);
    hub.list("o/r", "[]");
    hub.change("/api/models/o/r/tree/main?recursive=true", |held| {
        held.acts = vec![Act::Status(401, vec![], "".into()); 3].into();
    });
    let fault = downloads(folder.path(), &hub.address, None).offers("o/r").await.unwrap_err();
    assert_eq!(fault.code(), "access_refused");
    assert!(fault.hint().unwrap().contains(&format!("{}/o/r", hub.address)), "{:?}", fault.hint());
    let fault = downloads(folder.path(), &hub.address, Some("t")).offers("o/r").await.unwrap_err();
    assert!(fault.to_string().contains("this token"), "{fault}");
}

#[tokio::test]
async fn a_split_model_is_one_download() {
    let (folder, stage) = (tempfile::tempdir().unwrap(), Stage::open().await);
    let parts: Vec<Vec<u8>> = (1..=3).map(|seed| model(seed, 100_000)).collect();
    stage.repository(
        "o/r",
        &[
            ("big-Q4_K_M-00001-of-00003.gguf", &parts[0]),
            ("big-Q4_K_M-00003-of-00003.gguf", &parts[2]),
            ("big-Q4_K_M-00002-of-00003.gguf", &parts[1]),
            ("torn-Q8_0-00001-of-00002.gguf", &parts[1]),
            ("mmproj-F16.gguf", &model(4, 10_000)),
            ("README.md", b"# hi"),
        ],
    );
    let downloads = downloads(folder.path(), &stage.address, None);
    let offers = downloads.offers("o/r").await.unwrap();
    let seen: Vec<_> =
        offers.offers.iter().map(|it| (it.name.as_str(), it.files.len(), it.projector)).collect();
    assert_eq!(seen, [("big-Q4_K_M-00001-of-00003.gguf", 3, false), ("mmproj-F16.gguf", 1, true)]);
    assert_eq!((offers.other_files, offers.offers[0].size()), (1, Some(300_000)));
    stage.change("/o/r/resolve/main/big-Q4_K_M-00002-of-00003.gguf", |held| {
        held.acts = vec![Act::HoldAfter(50_000)].into()
    });
    let begun = downloads.start(&offers, offers.choose(None).unwrap(), None).await.unwrap();
    until(&downloads, &begun.id, |it| it.done == 150_000).await;
    downloads.pause(&begun.id).await.unwrap();
    let second = stage::downloads(folder.path(), &stage.address, None);
    assert_eq!(second.list()[0].done, 150_000);
    second.resume(&begun.id).unwrap();
    let download = ended(&second, &begun.id).await;
    assert!(matches!(download.state, State::Done), "{download:?}");
    assert_eq!(files(folder.path()).len(), 3);
    for (number, part) in parts.iter().enumerate() {
        let path = folder.path().join(format!("big-Q4_K_M-{:05}-of-00003.gguf", number + 1));
        assert_eq!(&std::fs::read(path).unwrap(), part);
    }
    assert_eq!(stage.asked_for("00001-of").len(), 1);
}

#[tokio::test]
async fn lists_of_any_kind_end() {
    let (folder, stage) = (tempfile::tempdir().unwrap(), Stage::open().await);
    let downloads = downloads(folder.path(), &stage.address, None);
    for (body, code) in [
        ("[]", "no_such_file"),
        ("{\"error\": 1}", "server_failed"),
        ("[", "server_failed"),
        ("", "server_failed"),
    ] {
        stage.list("o/r", body);
        assert_eq!(downloads.offers("o/r").await.unwrap_err().code(), code, "{body}");
    }
    let many: Vec<_> = (0..40_000)
        .map(|n| serde_json::json!({"type": "file", "path": format!("m{n}.gguf"), "size": n}))
        .collect();
    stage.list("o/r", &serde_json::to_string(&many).unwrap());
    assert_eq!(downloads.offers("o/r").await.unwrap().offers.len(), 40_000);
    // A list in pages that never ends.
    let page = r#"[{"type": "file", "path": "m.gguf", "size": 1}]"#;
    let link = format!("<{}/api/models/o/r/tree/main?recursive=true>; rel=\"next\"", stage.address);
    stage.change("/api/models/o/r/tree/main?recursive=true", |held| {
        held.acts = vec![Act::Status(200, vec![("Link", link)], page.into()); 500].into();
    });
    assert!(!downloads.offers("o/r").await.unwrap().offers.is_empty());
}

#[tokio::test]
async fn a_quantisation_or_a_file_can_be_chosen() {
    let (folder, stage) = (tempfile::tempdir().unwrap(), Stage::open().await);
    let names = ["m-Q8_0.gguf", "m-Q4_K_M.gguf", "sub/m-IQ2_XS.gguf", "mmproj-m-F16.gguf"];
    let files: Vec<(String, Vec<u8>)> =
        names.iter().zip(1..).map(|(name, n)| ((*name).into(), model(n, 1000))).collect();
    let borrowed: Vec<(&str, &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    stage.repository("o/r", &borrowed);
    let downloads = downloads(folder.path(), &stage.address, None);
    let chosen = async |target: &str, file: Option<&str>| {
        let offers = downloads.offers(target).await.unwrap();
        offers.choose(file).map(|offer| offer.name.clone()).map_err(|fault| fault.code())
    };
    assert_eq!(chosen("o/r", None).await, Ok("m-Q4_K_M.gguf".into()));
    assert_eq!(chosen("o/r:q8_0", None).await, Ok("m-Q8_0.gguf".into()));
    assert_eq!(chosen("hf.co/o/r:IQ2", None).await, Ok("sub/m-IQ2_XS.gguf".into()));
    assert_eq!(chosen("o/r", Some("m-IQ2_XS.gguf")).await, Ok("sub/m-IQ2_XS.gguf".into()));
    assert_eq!(
        chosen("https://huggingface.co/o/r/blob/main/mmproj-m-F16.gguf", None).await,
        Ok("mmproj-m-F16.gguf".into())
    );
    assert_eq!(chosen("o/r:Q5_K_M", None).await, Err("no_such_file"));
}

#[tokio::test]
async fn names_of_servers_stay_in_the_folder() {
    let (outer, stage, bytes) = (tempfile::tempdir().unwrap(), Stage::open().await, model(1, 300_000));
    let folder = outer.path().join("models");
    let name = |name: &str| Act::Status(200, vec![("Content-Disposition", name.to_owned())], "GGUF".into());
    for given in
        ["attachment; filename=\"../../evil.gguf\"", "attachment; filename*=UTF-8''..%2F..%2Fevil.gguf"]
    {
        stage.hold("/a", &bytes, [name(given)]);
        let downloads = downloads(&folder, "http://127.0.0.1:9/", None);
        let offers = downloads.offers(&format!("{}/a", stage.address)).await.unwrap();
        assert_eq!(offers.offers[0].files[0].name, "evil.gguf");
    }
    let listed = r#"[{"type": "file", "path": "../../../evil.gguf", "size": 9}, {"type": "file", "path": "x\\..\\con.gguf", "size": 9},
        {"type": "other"}, 5, null, {"type": "directory", "path": "d.gguf"}]"#;
    stage.list("o/r", listed);
    let offers = downloads(&folder, &stage.address, None).offers("o/r").await.unwrap();
    let names: Vec<_> = offers.offers.iter().map(|offer| offer.files[0].name.clone()).collect();
    assert_eq!(names, ["evil.gguf", "_con.gguf"]);
    assert!(offers.offers.iter().all(|offer| offer.files[0].url.as_str().starts_with(&stage.address)));
}

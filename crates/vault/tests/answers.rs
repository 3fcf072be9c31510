use lectern_vault::index::{Index, Prepared};
use lectern_vault::search::search;
use lectern_vault::vault::Vault;
use std::path::Path;

#[test]
fn eval() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let vault = Vault::open(&root.join("vault")).unwrap();
    let index = Index::new().unwrap();
    let notes: Vec<_> = vault
        .walk("")
        .into_iter()
        .map(|e| {
            let t = vault.read(&e.path, u64::MAX).unwrap();
            Prepared::new(e, &t)
        })
        .collect();
    index.put(&notes).unwrap();
    let (mut n, mut path_ok, mut quote_ok) = (0, 0, 0);
    for line in std::fs::read_to_string(root.join("questions.jsonl")).unwrap().lines() {
        let q: serde_json::Value = serde_json::from_str(line).unwrap();
        let question = q["question"].as_str().unwrap();
        let hits = search(&index, question, "", 3).unwrap();
        match q["kind"].as_str().unwrap() {
            "ask" => {
                n += 1;
                let quote = q["quote"].as_str().unwrap();
                let p = hits.first().is_some_and(|h| h.path.as_str() == q["path"]);
                let z = hits.first().is_some_and(|h| h.passage.contains(quote));
                path_ok += p as u32;
                quote_ok += z as u32;
                if !(p && z) {
                    println!("MISS {question}\n  want {} {quote}", q["path"]);
                    for h in &hits {
                        println!("   {:.3} {} {:?} {:?} {}", h.score, h.path, h.trail, h.lines, h.passage);
                    }
                }
            }
            "none" => {
                println!(
                    "NONE {question} -> {:?}",
                    hits.iter().map(|h| (h.score, &h.path, &h.passage)).collect::<Vec<_>>()
                );
            }
            "read" => {
                println!(
                    "READ {question} -> {:?}",
                    hits.iter().map(|h| (h.score, h.path.as_str())).collect::<Vec<_>>()
                );
            }
            _ => {}
        }
    }
    println!("{path_ok}/{n} {quote_ok}/{n}");
}

//! The peer against a hand at the other end of the pipes.

use futures::future::join_all;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};

use super::*;
use crate::config::HostOptions;
use crate::mask::Mask;
use crate::pipe;

/// The server's end.
struct Hand {
    lines: Lines<BufReader<DuplexStream>>,
    out: DuplexStream,
    notices: mpsc::Receiver<Notice>,
}

impl Hand {
    async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.out.write_all(bytes.as_ref()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("a line");
        serde_json::from_str(&line).unwrap()
    }
}

fn pair() -> (Peer, Hand) {
    // Two pipes, as a process has them: the end of one is not the end of the other.
    let (input, out) = tokio::io::duplex(4_096);
    let (output, lines) = tokio::io::duplex(4_096);
    let (sender, notices) = mpsc::channel(16);
    let desk = Desk::new(&"s".into(), &HostOptions::default(), Mask::default());
    let (peer, carrier) =
        Peer::new(PeerOptions { desk, notices: sender, traffic: Arc::new(Traffic::default()) });
    pipe::carry(carrier, BufReader::new(input), output, 100_000);
    (peer, Hand { lines: BufReader::new(lines).lines(), out, notices })
}

fn result(id: impl Into<Value>, result: Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "result": result, "id": id.into()}))
}

#[tokio::test]
async fn replies_find_their_requests_among_rubbish_and_out_of_order() {
    const COUNT: usize = 200;
    let (peer, mut hand) = pair();
    let asked = join_all((0..COUNT).map(|n| {
        let peer = peer.clone();
        async move { peer.ask("echo", Map::from_iter([("n".to_owned(), json!(n))])).await }
    }));
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for _ in 0..COUNT {
            requests.push(hand.read().await);
        }
        let rubbish: [&[u8]; 8] = [
            b"Listening on stdio\n",
            b"\n\r\n",
            b"{\"half\": \n",
            b"\xff\xfe\xfd\n",
            b"null\n[]\n[1,2]\n\"text\"\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":999998,\"result\":\"\xff\"}\n",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard-of\",\"params\":[1]}\n",
        ];
        for (turn, at) in (0..COUNT).map(|n| (n, (n * 77) % COUNT)) {
            hand.write(rubbish[turn % rubbish.len()]).await;
            let request = &requests[at];
            let reply = result(request["id"].clone(), request["params"]["n"].clone());
            hand.write(if turn % 3 == 0 { format!("[{}]\n", reply.trim()) } else { reply }).await;
        }
    });
    let answers = asked.await;
    assert_eq!(answers, (0..COUNT).map(|n| Ok(json!(n))).collect::<Vec<_>>());
    server.await.unwrap();
}

#[tokio::test]
async fn the_end_of_the_output_settles_everything() {
    let (peer, hand) = pair();
    let waiting = tokio::spawn({
        let peer = peer.clone();
        async move { peer.ask("wait", Map::new()).await }
    });
    tokio::task::yield_now().await;
    drop(hand);
    assert_eq!(waiting.await.unwrap(), Err(PeerError::Closed));
    peer.closed().await;
    assert_eq!(peer.ask("more", Map::new()).await, Err(PeerError::Closed));
}

#[tokio::test]
async fn ids_may_come_back_in_another_dress() {
    let (peer, mut hand) = pair();
    for dress in ["text", "float", "null"] {
        let mut request = peer.request("x", Map::new(), Reports::Unwanted).await.unwrap();
        let id = hand.read().await["id"].as_i64().unwrap();
        match dress {
            "text" => hand.write(result(id.to_string(), json!("ok"))).await,
            "float" => hand.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}.0,\"result\":\"ok\"}}\n")).await,
            _ => {
                hand.write(
                    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}\n",
                )
                .await
            }
        }
        let error = PeerError::Rpc { code: -32700, message: "no".into(), data: None };
        assert_eq!(
            request.result().await,
            if dress == "null" { Err(error) } else { Ok(json!("ok")) },
            "{dress}"
        );
    }
}

#[tokio::test]
async fn a_request_that_was_given_up_is_forgotten() {
    let (peer, mut hand) = pair();
    let given_up = peer.request("a", Map::new(), Reports::Wanted).await.unwrap();
    let id = given_up.id;
    drop(given_up);
    assert!(peer.shared.pending().requests.is_empty());
    hand.write(result(id, json!("late"))).await;
    let mut next = peer.request("b", Map::new(), Reports::Unwanted).await.unwrap();
    hand.write(result(next.id, json!("in time"))).await;
    assert_eq!(next.result().await, Ok(json!("in time")));
}

#[tokio::test]
async fn only_the_newest_progress_waits_for_ever() {
    let (peer, mut hand) = pair();
    let request = peer.request("a", Map::new(), Reports::Wanted).await.unwrap();
    let news = |n: usize| json!({"method": "notifications/progress", "params": {"progressToken": request.id, "progress": n}});
    for n in 0..PROGRESS_BACKLOG * 3 {
        hand.write(format!("{}\n", news(n))).await;
    }
    // A reply to a later request has been read after all of them.
    let mut later = peer.request("b", Map::new(), Reports::Unwanted).await.unwrap();
    hand.write(result(later.id, json!(null))).await;
    later.reply().await.unwrap();
    let waiting: Vec<Value> = std::iter::from_fn(|| request.progress.try_next()).collect();
    assert_eq!(waiting.len(), PROGRESS_BACKLOG);
    assert_eq!(waiting.last(), Some(&news(PROGRESS_BACKLOG * 3 - 1)));
}

#[tokio::test]
async fn a_server_that_asks_and_never_reads_does_not_stop_the_reading() {
    let (peer, mut hand) = pair();
    let mut request = peer.request("a", Map::new(), Reports::Unwanted).await.unwrap();
    for n in 0..WRITE_BACKLOG * 20 {
        hand.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"ping\"}}\n")).await;
    }
    hand.write(result(request.id, json!("still here"))).await;
    assert_eq!(request.result().await, Ok(json!("still here")));
    // Closing does not wait for the lines that nobody reads either.
    peer.close();
    let mut rest = Vec::new();
    hand.lines.into_inner().read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn logs_and_changes_are_passed_on() {
    let (_peer, mut hand) = pair();
    hand.write("hello\n{\"method\":\"notifications/tools/list_changed\"}\n").await;
    hand.write("{\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":\"bad\"}}\n")
        .await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(hand.notices.recv().await.unwrap());
    }
    let log = |text: &str| Notice::Log(text.into(), None);
    assert_eq!(heard, [log("[stdout] hello"), Notice::ToolsChanged, log("[error] bad")]);
}

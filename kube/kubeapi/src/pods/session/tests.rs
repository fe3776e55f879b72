//! Sessions over a pipe in memory, with the clock paused: time passes only when every task waits.

use super::*;
use serde_json::Value;
use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;

const TERMS: SessionOptions =
    SessionOptions { protocol: Protocol::V5, purpose: Purpose::Exec, stdout: true, stderr: false };
/// What fits into the pipe each way.
const PIPE: usize = 4096;

/// The program's end of a session.
struct Program {
    stdin: mpsc::Receiver<Bytes>,
    output: mpsc::Sender<Output>,
    ended: oneshot::Sender<Exit>,
}

fn start(options: SessionOptions) -> (DuplexStream, Program, JoinHandle<()>) {
    let (client, server) = duplex(PIPE);
    let (to_stdin, stdin) = mpsc::channel(2);
    let (output, from_output) = mpsc::channel(2);
    let (ended, exit) = oneshot::channel();
    let session = Session { stdin: Some(to_stdin), output: from_output, ended: exit };
    let carried = tokio::spawn(carry(server, options, Ok(session)));
    (client, Program { stdin, output, ended }, carried)
}

/// A binary message as a client sends it: the mask is zero.
fn message(bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x82, 0x80 | u8::try_from(bytes.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(bytes);
    frame
}

/// The next frame of a server: its operation and payload.
async fn frame(client: &mut DuplexStream) -> (u8, Vec<u8>) {
    let one = client.read_u8().await.unwrap();
    let length = match client.read_u8().await.unwrap() {
        126 => usize::from(client.read_u16().await.unwrap()),
        127 => usize::try_from(client.read_u64().await.unwrap()).unwrap(),
        short => usize::from(short),
    };
    let mut payload = vec![0; length];
    client.read_exact(&mut payload).await.unwrap();
    (one & 0x0f, payload)
}

/// Reads until the status, and the farewell after it; the output before them is what is left.
async fn rest(client: &mut DuplexStream) -> (Vec<u8>, Value) {
    let mut output = Vec::new();
    loop {
        match frame(client).await {
            (2, payload) if payload[0] == channels::STDOUT => output.extend_from_slice(&payload[1..]),
            (2, payload) => {
                assert_eq!(payload[0], channels::ERROR);
                assert_eq!(frame(client).await, (8, websocket::NORMAL.to_be_bytes().to_vec()));
                return (output, serde_json::from_slice(&payload[1..]).unwrap());
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
}

/// The program hears that its client is gone, and the session is over, before long.
async fn ends(program: Program, carried: JoinHandle<()>) {
    let soon = Duration::from_secs(60);
    tokio::time::timeout(soon, program.output.closed())
        .await
        .expect("the program hears that the client is gone");
    tokio::time::timeout(soon, carried).await.expect("the session ends").unwrap();
}

#[tokio::test(start_paused = true)]
async fn input_output_and_code_are_carried() {
    let (mut client, mut program, carried) = start(TERMS);
    client.write_all(&message(b"\0abc")).await.unwrap();
    client.write_all(&message(&[255, 0])).await.unwrap();
    assert_eq!(program.stdin.recv().await.unwrap(), "abc");
    let end = tokio::time::timeout(Duration::from_secs(60), program.stdin.recv()).await;
    assert_eq!(end, Ok(None), "the client said that there is no more");
    program.output.send(Output::Stdout("hello".into())).await.unwrap();
    program.output.send(Output::Stderr("not asked for".into())).await.unwrap();
    drop(program.output);
    program.ended.send(Exit::Code(3)).unwrap();
    let (output, status) = rest(&mut client).await;
    assert_eq!(output, b"hello");
    assert_eq!(status["details"]["causes"][0]["message"], "3");
    drop(client);
    carried.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_makes_the_program_wait() {
    let (mut client, program, _carried) = start(TERMS);
    let piece = Bytes::from(vec![7; 1000]);
    let mut written = 0;
    let mut write = async || {
        let sent = program.output.send(Output::Stdout(piece.clone()));
        let sent = tokio::time::timeout(Duration::from_millis(1), sent).await;
        sent.is_ok().then(|| written += 1)
    };
    while write().await.is_some() {}
    // The pipe, the channel, and one piece on its way: nothing else holds output.
    assert!((4..=8).contains(&written), "{written} pieces");
    let before = written;
    for _ in 0..5 {
        frame(&mut client).await;
    }
    let mut write = async || {
        let sent = program.output.send(Output::Stdout(piece.clone()));
        tokio::time::timeout(Duration::from_millis(1), sent).await.is_ok().then(|| written += 1)
    };
    while write().await.is_some() {}
    assert!(written > before, "reading goes on, and so does writing");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_read_makes_the_client_wait_and_still_speaks() {
    let (mut client, program, _carried) = start(TERMS);
    let piece = message(&[0; 100]);
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(1), client.write_all(&piece)).await.is_ok() {
        sent += piece.len();
        assert!(sent < 3 * PIECE, "input piles up");
    }
    program.output.send(Output::Stdout("hello".into())).await.unwrap();
    assert_eq!(frame(&mut client).await, (2, vec![channels::STDOUT]));
    assert_eq!(frame(&mut client).await, (2, b"\x01hello".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_ends_the_session() {
    let (mut client, program, carried) = start(TERMS);
    // From here on there is nothing to send that could fail.
    assert_eq!(frame(&mut client).await.0, 2);
    drop(client);
    ends(program, carried).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_behind_its_own_input_is_missed() {
    let (mut client, program, carried) = start(TERMS);
    let piece = message(&[0; 100]);
    while tokio::time::timeout(Duration::from_millis(1), client.write_all(&piece)).await.is_ok() {}
    drop(client);
    ends(program, carried).await;
}

#[tokio::test(start_paused = true)]
async fn a_farewell_is_answered() {
    let (mut client, program, carried) = start(TERMS);
    client.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.unwrap();
    assert_eq!(frame(&mut client).await, (2, vec![channels::STDOUT]));
    assert_eq!(frame(&mut client).await, (8, websocket::NORMAL.to_be_bytes().to_vec()));
    program.output.closed().await;
    drop(client);
    carried.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_breaks_the_rules_is_told_and_left() {
    for bytes in [&[0x82, 0x01, 0x00][..], &message(&[255, 9]), &[0xff; 20]] {
        let (mut client, program, carried) = start(TERMS);
        client.write_all(bytes).await.unwrap();
        assert_eq!(frame(&mut client).await.0, 2);
        assert_eq!(frame(&mut client).await, (8, websocket::PROTOCOL_ERROR.to_be_bytes().to_vec()));
        program.output.closed().await;
        drop(client);
        carried.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_while_the_program_is_silent() {
    let (mut client, _program, _carried) = start(TERMS);
    assert_eq!(frame(&mut client).await.0, 2);
    client.write_all(&[0x89, 0x82, 0, 0, 0, 0, b'h', b'i']).await.unwrap();
    assert_eq!(frame(&mut client).await, (10, b"hi".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_can_not_begin_says_why() {
    let (mut client, server) = duplex(PIPE);
    tokio::spawn(carry(server, TERMS, Err("it does not run".to_owned())));
    let (output, status) = rest(&mut client).await;
    assert!(output.is_empty());
    assert!(status["message"].as_str().unwrap().ends_with(": it does not run"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_vanishes_is_a_failure() {
    let (mut client, program, _carried) = start(TERMS);
    drop(program);
    let (_, status) = rest(&mut client).await;
    assert_eq!(status["reason"], "InternalError");
}

//! Environment variables of the host program do not change where requests go.

use std::net::TcpListener;
use std::process::Command;

use crate::server::{Answer, Server};
use crate::{fetch, rules};

const CHILD: &str = "RLF_HTTP_TEST_CHILD";

#[test]
fn proxy_variables_change_nothing() {
    if std::env::var_os(CHILD).is_some() {
        return fetch_in_the_child();
    }
    let proxy = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "environment::proxy_variables_change_nothing"])
        .env(CHILD, "1");
    for name in ["http_proxy", "https_proxy", "all_proxy", "ftp_proxy"] {
        child.env(name, &address).env(name.to_uppercase(), &address);
    }
    child
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .env_remove("REQUEST_METHOD");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    let connected = proxy.accept().map_err(|error| error.kind());
    assert_eq!(connected.err(), Some(std::io::ErrorKind::WouldBlock));
}

#[tokio::main(flavor = "current_thread")]
async fn fetch_in_the_child() {
    let server = Server::start(Answer::ok("", "directly")).await;
    let answer = fetch(&rules(server.port), server.port).await.unwrap();
    assert_eq!(answer.body, b"directly");
}

//! A redirect is returned as an answer and never followed.

use crate::server::{Answer, Server};
use crate::{call, get, rules};

#[tokio::test]
async fn no_redirect_is_followed() {
    let mut elsewhere = Server::start(Answer::ok("", "secret")).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("http://api.test:{}/", elsewhere.port);
        let mut server = Server::start(Answer::text(&format!(
            "HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        )))
        .await;
        let mut rules = rules(server.port);
        // Not even to a host that the plugin may reach itself.
        rules
            .hosts
            .get_mut("api.test")
            .unwrap()
            .ports
            .insert(elsewhere.port);
        let answer = call(&rules)
            .fetch(get(format!("http://api.test:{}/", server.port)))
            .await;
        let answer = answer.unwrap();
        assert_eq!(answer.status, status);
        assert!(answer.headers.contains(&("location".to_owned(), location)));
        server.request().await;
        server.closed().await;
        assert!(server.is_untouched());
    }
    assert!(elsewhere.is_untouched());
}

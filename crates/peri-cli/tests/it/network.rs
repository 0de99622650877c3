//! No request leaves for any address but the configured endpoint.

use std::net::TcpListener;

use peri_testkit::model_server::{Answer, FakeModelServer, Script};

use crate::sandbox::Sandbox;

#[test]
fn proxies_are_not_used_for_this_machine_and_nothing_else_is_called() {
    let model = FakeModelServer::start(Script::repeating_last([Answer::new().text("Hello.")]));
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    proxy.set_nonblocking(true).expect("a socket");
    let address = format!("http://{}", proxy.local_addr().expect("an address"));
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut invocation = sandbox.peri(["-p", "x"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        invocation = invocation.env(name, Some(&address));
    }
    let run = invocation.run();
    run.code(0).stdout_is("Hello.\n");
    let called = proxy.accept().is_ok();
    run.check(!called, "the proxy was not called")
        .check(model.requests().len() == 1 && model.unexpected().is_empty(), "one request, to the one path");
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = FakeModelServer::start(Script::repeating_last([Answer::new().text("Gotcha.")]));
    let redirect = peri_testkit::model_server::Reply::status(307)
        .header("location", &format!("{}/v1/messages", elsewhere.base_url()));
    let model = FakeModelServer::start(Script::repeating_last([redirect]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x"]).run();
    run.code(1).stderr_has("307");
    run.check(elsewhere.requests().is_empty(), "the other address was not called");
}

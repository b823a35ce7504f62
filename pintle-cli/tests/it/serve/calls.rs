//! How tools of a file are called: once, as tasks, and at virtual servers.

use pintle::{
    Client,
    client::{Mode, http::Http},
    transport::Child,
};
use pintle_tasks::{TaskHandle, TaskPolling};
use serde_json::json;

use crate::support::{HttpServing, machine::Machine, pintle, run};

const FILE: &str = r#"
[tools.pay]
command = "echo {amount} >> paid; wc -l < paid"
shell = true
arguments = { order = "string", amount = "integer" }
once = "{order}"

[tools.report]
command = ["cat", "paid"]
task = true
"#;

#[tokio::test]
async fn a_repeated_call_with_the_key_of_another_does_not_run_again() {
    let machine = Machine::new("serve-once");
    machine.write("tools.toml", FILE);
    let file = machine.path("tools.toml");
    for mode in [Mode::Modern, Mode::Legacy] {
        machine.write("paid", "");
        let child = Child::command(env!("CARGO_BIN_EXE_pintle")).args(["serve", file.to_str().unwrap()]);
        let client = Client::new("test", "1").mode(mode).connect(child.spawn().unwrap()).await.unwrap();
        let pay = async |order: &str, amount: u32| {
            let paid = client.call_tool("pay", json!({"order": order, "amount": amount})).await;
            paid.map_or_else(|error| error.to_string(), |result| result.text().trim().to_owned())
        };
        let (first, second) = tokio::join!(pay("7", 10), pay("7", 10));
        assert_eq!((&*first, &*second), ("1", "1"), "both have the result of one run");
        assert_eq!(pay("8", 10).await, "2");
        assert_eq!(pay("7", 10).await, "1");
        let other = pay("7", 11).await;
        assert!(other.contains("with other arguments"), "{other}");
        // A changed file knows the calls, too.
        let mut changes = client.changes().await.unwrap();
        machine.write("tools.toml", &FILE.replace("[tools.pay]", "[tools.pay]\ndescription = \"Pays.\""));
        while client.tools().await.unwrap().iter().all(|tool| tool.description.is_none()) {
            changes.next().await.unwrap();
        }
        assert_eq!(pay("8", 10).await, "2");
        client.close().await;
        machine.write("tools.toml", FILE);
    }
}

#[tokio::test]
async fn a_call_of_a_tool_of_a_file_can_be_a_task() {
    let machine = Machine::new("serve-task");
    machine.write("tools.toml", FILE);
    machine.write("paid", "nothing yet");
    let file = machine.path("tools.toml");
    let child = Child::command(env!("CARGO_BIN_EXE_pintle")).args(["serve", file.to_str().unwrap()]);
    let client = Client::new("test", "1").with(TaskPolling::new());
    let client = client.connect(child.spawn().unwrap()).await.unwrap();
    let task = TaskHandle::of(client.call("report").start().await.unwrap()).expect("it runs in a process");
    assert_eq!(task.result().await.unwrap().text(), "nothing yet");
    client.close().await;
}

const SERVERS: &str = r#"
[servers.reading]
only = ["report"]
tools.report.rename = "read_report"

[servers.demo-only]
targets = ["demo"]

[targets.demo]
server = "demo"
"#;

#[tokio::test]
async fn a_virtual_server_has_the_tools_of_its_file() {
    let machine = Machine::new("serve-profile");
    machine.write("tools.toml", &format!("{FILE}{SERVERS}"));
    machine.write("paid", "10");
    let mut command = pintle();
    command.args(["serve", "tools.toml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
    let gateway = HttpServing::of(command);
    let names = async |path: &str| -> Vec<String> {
        let url = format!("{}/{path}", gateway.url);
        let client = Client::new("test", "1").connect(Http::new(&url).unwrap()).await.unwrap();
        client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
    };
    assert_eq!(names("reading").await, ["read_report"]);
    assert!(names("demo-only").await.iter().all(|name| name.starts_with("demo_")));

    // The same on standard streams, as a profile. A change of the file reaches its client.
    let file = machine.path("tools.toml");
    let words = ["serve", file.to_str().unwrap(), "--profile", "reading"];
    let child = Child::command(env!("CARGO_BIN_EXE_pintle")).args(words);
    let client = Client::new("test", "1").connect(child.spawn().unwrap()).await.unwrap();
    assert_eq!(client.call_tool("read_report", json!({})).await.unwrap().text(), "10");
    let mut changes = client.changes().await.unwrap();
    machine
        .write("tools.toml", &format!("{FILE}{}", SERVERS.replace("[\"report\"]", "[\"report\", \"pay\"]")));
    while client.tools().await.unwrap().len() < 2 {
        changes.next().await.unwrap();
    }
    client.close().await;
    let wrong =
        run(pintle().args(["serve", "tools.toml", "--profile", "readin"]).current_dir(machine.path("")));
    assert!(wrong.stderr.contains("no `[servers.readin]`; did you mean `reading`?"), "{wrong:?}");
}

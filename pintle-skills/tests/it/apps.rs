//! Apps: where their metadata is, and what is refused because hosts would ignore it.

use pintle::{
    Client, Server,
    server::{Cx, Prefix, resource, tool},
    types::{Meta, RawObject},
};
use pintle_skills::apps::{self, App, AppPermission, Apps, RenderApps};
use serde_json::{Value, json};

use crate::support::eras::{ALL, WITH_FORMS as WITH_METADATA};

const URI: &str = "ui://clock/face";

fn clock() -> App {
    App::new(URI, "clock", "<p>noon</p>")
        .title("Clock")
        .connect_to("https://time.example")
        .permission(AppPermission::Camera)
        .border(true)
        .tool(tool("show", |cx: Cx| async move { if apps::client_renders(&cx) { "shown" } else { "noon" } }))
        .app_tool(tool("wind", || async { "wound" }))
}

async fn ask(server: &Server, revision: &str, method: &'static str, params: Value) -> Value {
    let client = Client::new("c", "1").revisions([revision.parse().unwrap()]);
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    let result = connection.call_raw(method, RawObject::from_serialize(&params).unwrap()).await.unwrap();
    serde_json::from_str(result.as_str()).unwrap()
}

/// The policy is at the list entry and at the contents, the tool has the URI in the old and the new place, in every revision that has
/// metadata of tools.
#[tokio::test]
async fn metadata_is_where_hosts_look_for_it() {
    let server = Server::new("s", "1").with(Apps::new().app(clock()));
    server.check().unwrap();
    let of_resource = json!({
        "csp": {"connectDomains": ["https://time.example"], "resourceDomains": []},
        "permissions": {"camera": {}},
        "prefersBorder": true,
    });
    for revision in WITH_METADATA {
        let tools = ask(&server, revision, "tools/list", json!({})).await;
        let meta = &tools["tools"][0]["_meta"];
        assert_eq!(meta["ui"], json!({"resourceUri": URI}), "{revision}");
        assert_eq!(meta["ui/resourceUri"], URI, "{revision}");
        assert_eq!(tools["tools"][1]["_meta"], json!({"ui": {"visibility": ["app"]}}), "{revision}");
        let listed = ask(&server, revision, "resources/list", json!({})).await;
        assert_eq!(listed["resources"][0]["mimeType"], "text/html;profile=mcp-app", "{revision}");
        assert_eq!(listed["resources"][0]["_meta"]["ui"], of_resource, "{revision}");
        let read = ask(&server, revision, "resources/read", json!({"uri": URI})).await;
        let contents = &read["contents"][0];
        assert_eq!((&contents["uri"], &contents["text"]), (&json!(URI), &json!("<p>noon</p>")), "{revision}");
        assert_eq!(contents["mimeType"], "text/html;profile=mcp-app", "{revision}");
        assert_eq!(contents["_meta"]["ui"], of_resource, "{revision}");
    }
    let without = Server::new("s", "1").with(Apps::new().compat(false).app(clock()));
    let tools = ask(&without, ALL[4], "tools/list", json!({})).await;
    assert_eq!(tools["tools"][0]["_meta"], json!({"ui": {"resourceUri": URI}}));
}

#[tokio::test]
async fn the_capability_is_declared_and_a_tool_knows_who_renders_in_every_revision() {
    for revision in ALL {
        let server = Server::new("s", "1").with(Apps::new().app(clock()));
        let plain = Client::new("c", "1").revisions([revision.parse().unwrap()]);
        for (client, wanted) in [
            (plain.clone(), "noon"),
            (plain.clone().with(RenderApps), "shown"),
            // Declared, and of another kind.
            (
                plain.extension(
                    apps::EXTENSION,
                    json!({"mimeTypes": ["text/html"]}).as_object().unwrap().clone(),
                ),
                "noon",
            ),
        ] {
            let connection = client.connect(server.in_process().unwrap()).await.unwrap();
            let declared = connection.capabilities().extensions.unwrap();
            assert_eq!(declared[apps::EXTENSION], json!({}), "{revision}");
            assert_eq!(connection.call_tool("show", ()).await.unwrap().text(), wanted, "{revision}");
            let tools = connection.tools().await.unwrap();
            if WITH_METADATA.contains(&revision) {
                assert_eq!(apps::app_uri(&tools[0]), Some(URI));
                assert_eq!([apps::is_for_model(&tools[0]), apps::is_for_model(&tools[1])], [true, false]);
            }
            connection.close().await;
        }
    }
}

/// Another server may have an app of the URI that it has there.
#[tokio::test]
async fn a_tool_of_a_mounted_server_is_shown_with_the_app_of_that_server() {
    let inner = || Server::new("s", "1").with(Apps::new().app(clock()));
    let other = Server::new("other", "1").resource(resource(URI, "other", || async { "not the clock" }));
    let server = Server::new("desk", "1")
        .mount(Prefix::new("a").uris(), inner())
        .mount(Prefix::new("b").uris(), Server::new("inner", "1").mount(Prefix::new("c").uris(), inner()))
        .mount("other", other);
    for revision in WITH_METADATA {
        let tools = ask(&server, revision, "tools/list", json!({})).await;
        for (at, uri) in [(0, "ui://a/clock/face"), (2, "ui://b/c/clock/face")] {
            let meta = &tools["tools"][at]["_meta"];
            assert_eq!(meta["ui"], json!({ "resourceUri": uri }), "{revision}: {tools}");
            assert_eq!(meta["ui/resourceUri"], uri, "{revision}");
            let read = ask(&server, revision, "resources/read", json!({ "uri": uri })).await;
            assert_eq!(read["contents"][0]["text"], "<p>noon</p>", "{revision}");
        }
        assert_eq!(tools["tools"][1]["_meta"], json!({"ui": {"visibility": ["app"]}}), "{revision}");
    }
}

#[test]
fn a_tool_is_for_the_model_only_if_that_is_what_it_says_or_it_says_nothing() {
    for (meta, expected) in [
        (json!({}), true),
        (json!({"ui": {}}), true),
        (json!({"ui": {"visibility": ["model"]}}), true),
        (json!({"ui": {"visibility": ["app", "model"]}}), true),
        (json!({"ui": {"visibility": ["app"]}}), false),
        (json!({"ui": {"visibility": "app"}}), false),
        (json!({"ui": {"visibility": {"app": true}}}), false),
    ] {
        let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": meta});
        assert_eq!(apps::is_for_model(&serde_json::from_value(tool).unwrap()), expected, "{meta}");
    }
}

#[tokio::test]
async fn what_hosts_ignore_is_an_error_at_the_start() {
    let meta = |value: Value| serde_json::from_value::<Meta>(value).unwrap();
    let shown = |fields: Value| {
        let route = tool("other", || async { "" }).meta(meta(json!({ "ui": fields })));
        Server::new("s", "1").with(Apps::new().app(clock())).tool(route)
    };
    let old = |fields: Value| {
        let route = tool("other", || async { "" }).meta(meta(fields));
        Server::new("s", "1").with(Apps::new().app(clock())).tool(route)
    };
    let page = |mime: &str, fields: Value| {
        let route = resource("ui://page", "page", || async { "" })
            .mime_type(mime)
            .meta(meta(json!({ "ui": fields })));
        Server::new("s", "1").with(Apps::new()).resource(route)
    };
    let app = |app: App| Server::new("s", "1").with(Apps::new().app(app));
    for (server, reason) in [
        (shown(json!({"resourceUri": URI, "csp": {}})), "ignore `_meta.ui.csp` at a tool"),
        (shown(json!({"resourceUri": URI, "prefersBorder": true})), "ignore `_meta.ui.prefersBorder`"),
        (shown(json!({"resourceUri": URI, "resourceURI": URI})), "do not know `_meta.ui.resourceURI`"),
        (shown(json!({"resourceUri": "ui://clock/face/"})), "but `ui://clock/face`"),
        (shown(json!({"resourceUri": "ui://Clock/face"})), "but `ui://clock/face`"),
        (shown(json!({"resourceUri": "ui://none"})), "no resource `ui://none`"),
        (shown(json!({"resourceUri": "https://clock.example"})), "begin it with `ui://`"),
        (shown(json!({"resourceUri": "ui://clock/{zone}"})), "template"),
        (shown(json!({"resourceUri": 1})), "not text"),
        (shown(json!({"visibility": []})), "cannot be called"),
        (shown(json!({"visibility": ["user"]})), "`model`, `app` or both"),
        (shown(json!({"visibility": ["app", "app"]})), "`model`, `app` or both"),
        (shown(json!({"visibility": "app"})), "not a list"),
        (shown(json!("ui://clock/face")), "not an object"),
        (old(json!({"ui/resourceUri": URI})), "`ui/resourceUri` alone"),
        (old(json!({"ui/resourceUri": "ui://old", "ui": {"resourceUri": URI}})), "another resource in `ui`"),
        (page("text/html", json!({})), "media type"),
        (page("text/html;profile=mcp-app", json!("wide")), "`_meta.ui` is not an object"),
        (page("text/html;profile=mcp-app", json!({"resourceUri": URI})), "belongs to a tool"),
        (page("text/html;profile=mcp-app", json!({"csp": {"connectDomains": [1]}})), "it is not text"),
        (
            page("text/html;profile=mcp-app", json!({"csp": {"connectDomains": "https://a.example"}})),
            "`csp.connectDomains` is not a list",
        ),
        (
            page("text/html;profile=mcp-app", json!({"permissions": ["camera"]})),
            "`permissions` is not an object",
        ),
        (
            page("text/html;profile=mcp-app", json!({"permissions": {"clipboard": {}}})),
            "`permissions.clipboard`",
        ),
        (page("text/html;profile=mcp-app", json!({"connectDomains": []})), "belongs in `_meta.ui.csp`"),
        (page("text/html;profile=mcp-app", json!({"csp": {"connect": []}})), "do not know `csp.connect`"),
        (page("text/html;profile=mcp-app", json!({"csp": {"connectDomains": ["a.example"]}})), "scheme"),
        (page("text/html;profile=mcp-app", json!({"csp": "default-src *"})), "not an object"),
        (page("text/html;profile=mcp-app", json!({"visibility": ["app"]})), "belongs to a tool"),
        (
            app(App::new("https://a.example", "a", "").tool(tool("t", || async { "" }))),
            "begin it with `ui://`",
        ),
        (app(App::new(URI, "a", "").load_from("https://a.example/; script-src *")), "host name"),
        (Server::new("s", "1").with(Apps::new().app(clock()).app(clock())), "already registered"),
    ] {
        let error = server.check().map_err(|error| error.to_string()).expect_err(reason);
        assert!(error.contains(reason), "{reason}: {error}");
        assert!(server.in_process().is_err(), "{reason}");
    }
    // A part of the extension is not added if another cannot be.
    let server = Server::new("s", "1").tool(tool("wind", || async { "" })).with(Apps::new().app(clock()));
    assert!(server.check().unwrap_err().to_string().contains("`wind` is already registered"));
    assert_eq!(server.tools_where(|_: &_| true).len(), 1);
}

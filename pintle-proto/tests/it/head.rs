use http::{HeaderMap, HeaderValue, Method, Uri};
use pintle_proto::http::Head;

#[test]
fn a_head_has_a_method_a_query_and_a_host() {
    let (none, mut host) = (HeaderMap::new(), HeaderMap::new());
    host.insert("host", HeaderValue::from_static("a.test"));
    let (path, whole) = (Uri::from_static("/mcp"), Uri::from_static("http://a.test/mcp?session=1"));
    let head = Head::new(&Method::DELETE, &path, &none);
    assert_eq!((head.method(), head.query(), head.has_host()), (&Method::DELETE, None, false));
    let head = Head::new(&Method::POST, &whole, &none);
    assert_eq!((head.method(), head.query(), head.has_host()), (&Method::POST, Some("session=1"), true));
    assert!(Head::new(&Method::POST, &path, &host).has_host());
}

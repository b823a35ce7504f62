//! Documents in files and texts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pintle_openapi::{OpenApi, OpenApiError};
use serde_json::json;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("pintle-openapi-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        for (file, text) in files {
            let file = path.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> OpenApi {
    OpenApi::from_file(path).unwrap().base("https://api.test")
}

const ROOT: &str = "
openapi: 3.0.3
info: { title: Pets }
paths:
  /pets: { $ref: 'paths/pets.yaml' }
  /cats: { $ref: 'paths/pets.yaml#/~1cats' }
";
const PETS: &str = "
post:
  operationId: addPet
  requestBody:
    required: true
    content:
      application/json: { schema: { $ref: '../schemas/pet%20s.json#/Pet' } }
/cats:
  get:
    operationId: cats
    parameters: [{ $ref: '../openapi.yaml#/components/parameters/none' }]
";
const SCHEMAS: &str = r##"{
    "Pet": { "type": "object", "additionalProperties": true, "properties": { "parent": { "$ref": "#/Pet" }, "kind": { "$ref": "kinds.yml" } } }
}"##;

#[test]
fn a_document_may_be_in_several_files() {
    let files = [
        ("openapi.yaml", ROOT),
        ("paths/pets.yaml", PETS),
        ("schemas/pet s.json", SCHEMAS),
        ("schemas/kinds.yml", "type: string\nenum: [cat, no]\n"),
    ];
    let folder = Folder::new("several", &files);
    let tools = read(&folder.path("openapi.yaml")).build().unwrap();
    assert_eq!(tools.tools().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["addPet"]);
    assert!(tools.left_out()[0].reason.contains("there is no such part"), "{:?}", tools.left_out());
    let schema = &tools.tools().next().unwrap().input_schema;
    assert_eq!(schema["properties"]["body"]["$ref"], "#/$defs/Pet");
    let pet = &schema["$defs"]["Pet"]["properties"];
    assert_eq!(
        *pet,
        json!({ "parent": { "$ref": "#/$defs/Pet" }, "kind": { "type": "string", "enum": ["cat", "no"] } })
    );
}

#[test]
fn nothing_outside_of_the_folder_is_read() {
    let get = |reference: &str| format!("{{ $ref: '{reference}' }}");
    let paths = [
        "../secret.yaml",
        "sub/../../secret.yaml",
        "..%2fsecret.yaml",
        "/etc/passwd",
        "link.yaml",
        "file:///etc/passwd",
        "https://example.com/a.yaml",
        "//example.com/a.yaml",
        "missing.yaml",
        "sub",
        "broken.yaml",
        "C:/a.yaml",
    ];
    let mut root = String::from("openapi: 3.1.0\npaths:\n");
    for (number, path) in paths.iter().enumerate() {
        root += &format!("  /{number}: {}\n", get(path));
    }
    let files = [
        ("in/openapi.yaml", root.as_str()),
        ("secret.yaml", "get: {}"),
        ("in/sub/x", ""),
        ("in/broken.yaml", "a: ["),
    ];
    let folder = Folder::new("outside", &files);
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path("secret.yaml"), folder.path("in/link.yaml")).unwrap();
    let tools = read(&folder.path("in/openapi.yaml")).build().unwrap();
    assert_eq!(tools.tools().count(), 0);
    assert_eq!(tools.left_out().len(), paths.len());
    for (path, left_out) in paths.iter().zip(tools.left_out()) {
        let reason = match *path {
            "file:///etc/passwd" | "https://example.com/a.yaml" | "//example.com/a.yaml" | "C:/a.yaml" => {
                "nothing is fetched"
            }
            "missing.yaml" => "cannot be read",
            "sub" => "not a file",
            "broken.yaml" => "valid YAML",
            _ => "outside of the folder",
        };
        assert!(left_out.reason.contains(reason) && left_out.reason.contains(path), "{left_out:?}");
    }
}

#[test]
fn what_is_no_document_is_refused_with_what_to_do() {
    for (text, reason) in [
        ("swagger: '2.0'", "convert it to OpenAPI 3"),
        ("{\"openapi\": \"4.0.0\"}", "OpenAPI `4.0.0` is not known"),
        ("openapi: 3.10.0", "not known"),
        ("info: {}", "has no `openapi`"),
        ("- a", "has no `openapi`"),
        ("", "has no `openapi`"),
        ("{\"openapi\": ", "not valid JSON"),
        ("openapi: 3.1.0\nopenapi: 3.1.0", "line 2, column 1: `openapi` is there twice"),
    ] {
        let error = OpenApi::from_text(text).unwrap_err();
        assert!(matches!(error, OpenApiError::Document { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{text}: {error}");
    }
    for version in ["3.0", "3.1", "'3.2.0'", "3.1.1-rc1", "3"] {
        assert!(OpenApi::from_text(&format!("openapi: {version}\npaths: {{}}")).is_ok(), "{version}");
    }
    assert!(matches!(OpenApi::from_file("no such file"), Err(OpenApiError::Io { .. })));
    let empty = OpenApi::from_text("openapi: 3.1.0").unwrap().build().unwrap();
    assert!(empty.warnings()[0].contains("no `paths`"));
}

#[test]
fn without_a_server_the_program_has_to_name_one() {
    let document = "openapi: 3.1.0\npaths:\n  /a: { get: {} }\n";
    let tools = OpenApi::from_text(document).unwrap().build().unwrap();
    assert!(tools.left_out()[0].reason.contains("give the URL with `base`"), "{:?}", tools.left_out());
    let tools =
        OpenApi::from_text(document).unwrap().document_url("https://api.test/openapi.yaml").build().unwrap();
    assert_eq!(tools.tools().count(), 1);
}

#[test]
fn a_change_of_any_file_is_noticed() {
    let folder = Folder::new("changes", &[("openapi.yaml", ROOT), ("paths/pets.yaml", PETS)]);
    let read = || read(&folder.path("openapi.yaml")).files().clone();
    let files = read();
    assert!(!files.have_changed() && files == read());
    fs::create_dir(folder.path("schemas")).unwrap();
    fs::write(folder.path("schemas/pet s.json"), SCHEMAS).unwrap();
    assert!(files.have_changed() && files != read(), "a file that was missing is there");
    let files = read();
    fs::write(folder.path("paths/pets.yaml"), format!("{PETS}\n")).unwrap();
    assert!(files.have_changed(), "it is longer");
    let files = read();
    fs::remove_file(folder.path("openapi.yaml")).unwrap();
    assert!(files.have_changed(), "it is gone");
    assert!(!OpenApi::from_text(ROOT).unwrap().files().have_changed(), "a text has no files");
}

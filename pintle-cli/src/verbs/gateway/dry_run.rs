use pintle_serve::CallPlan;
use serde_json::json;

use super::file::GatewayFile;
use crate::{
    args::near,
    arguments::{self, read_words},
    failure::Failure,
    output::Output,
};

const NEXT: &str = "pintle gateway --help";

/// Prints what a call of a tool would run. `words` are its name and the arguments, as `pintle call` takes them.
pub(super) async fn print(file: &GatewayFile, words: &[String], output: &Output) -> Result<(), Failure> {
    let wrong = |message: String| Failure::usage(message, NEXT);
    let tools = file.served_workers(output).and_then(|workers| file.served_tools(&workers));
    let tools = tools.map_err(|fault| wrong(fault.to_string()))?;
    let (name, words) = words.split_first().ok_or_else(|| wrong("`--dry-run` needs a tool".to_owned()))?;
    let offered =
        file.loaded.iter().filter_map(|(api, loaded)| Some((file.backend(api)?.prefix_text(api), loaded)));
    let offered: Vec<_> = offered.collect();
    let unknown = || {
        let names: Vec<_> = offered.iter().flat_map(|(prefix, api)| api.names(prefix)).collect();
        let names = file.tools.keys().chain(&names).map(String::as_str);
        let meant = near(name, names);
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        wrong(format!("the file has no tool `{name}`{meant}"))
    };
    let words = read_words(words).await.map_err(wrong)?;
    let plan = match tools.definition(name) {
        Some(tool) => {
            let arguments = arguments::of_tool(tool, words).map_err(wrong)?;
            tools.plan(name, &arguments).ok_or_else(unknown)?.map_err(|fault| fault.to_string())
        }
        None => {
            let found = offered.iter().find_map(|(prefix, api)| Some((api, api.offered(prefix, name)?)));
            let (api, tool) = found.ok_or_else(unknown)?;
            let arguments = arguments::of_tool(tool, words).map_err(wrong)?;
            api.plan(tool, &arguments).ok_or_else(unknown)?.map(CallPlan::Request)
        }
    };
    let plan = plan.map_err(|fault| wrong(format!("`{name}` would not run: {fault}")))?;
    output.result(&json!(plan), |text| {
        text.line(plan.line(&file.folder));
    })
}

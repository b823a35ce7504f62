use std::process::Stdio;

use pintle::types::{
    RpcError,
    schema::{ContentBlock, CreateMessageParams, CreateMessageResult},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

/// The largest answer of a command.
const MAX_BYTES: u64 = 16 << 20;
/// How much of the standard error of a command is quoted.
const MAX_STDERR: u64 = 4096;

/// Runs a command for a request to a model: the request is its standard input, and its standard output the message.
pub(super) async fn sample(
    command: &str,
    params: &CreateMessageParams,
) -> Result<CreateMessageResult, RpcError> {
    let failed = |reason: String| RpcError::internal(format!("the command of `--sample-with` {reason}"));
    let request = serde_json::to_vec(params).map_err(|error| RpcError::internal(error.to_string()))?;
    let mut child = shell(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A command need not read its request.
            let _ = stdin.write_all(&request).await;
        }
    };
    let ((), printed, complained) = tokio::join!(write, read(stdout, MAX_BYTES), read(stderr, MAX_STDERR));
    let status = child.wait().await.map_err(|error| failed(format!("failed: {error}")))?;
    if !status.success() {
        let complained = String::from_utf8_lossy(&complained);
        let last = complained.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(failed(format!("failed with {status}: {last}")));
    }
    if printed.len() as u64 > MAX_BYTES {
        return Err(failed(format!("printed more than {} MiB", MAX_BYTES >> 20)));
    }
    let printed = String::from_utf8(printed).map_err(|_| failed("printed what is not UTF-8".to_owned()))?;
    Ok(message(command, &printed))
}

/// Reads what was printed: a message as JSON, or else a text.
fn message(command: &str, printed: &str) -> CreateMessageResult {
    let printed = printed.strip_suffix('\n').unwrap_or(printed);
    serde_json::from_str(printed).unwrap_or_else(|_| {
        let model = command.split_whitespace().next().unwrap_or("command");
        CreateMessageResult::new(model, ContentBlock::text(printed))
    })
}

async fn read(from: Option<impl AsyncRead + Unpin>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return bytes };
    // What cannot be read is not there.
    let _ = (&mut from).take(limit + 1).read_to_end(&mut bytes).await;
    // The command must not wait for a reader.
    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    bytes
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.args(["/C", command]);
    shell
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use pintle::types::schema::{Role, SamplingMessage};

    use super::*;

    fn request() -> CreateMessageParams {
        let message = SamplingMessage::new(Role::User, ContentBlock::text("Hello?"));
        CreateMessageParams::new(vec![message], 40)
    }

    #[tokio::test]
    async fn a_command_answers_with_a_text_or_a_message() {
        let text = sample("grep -c Hello", &request()).await.unwrap();
        assert_eq!((text.model.as_str(), text.content.into_vec()[0].as_text()), ("grep", Some("1")));
        let json = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}"#;
        let message = sample(&format!("cat > /dev/null; echo '{json}'"), &request()).await.unwrap();
        assert_eq!((message.model.as_str(), message.content.into_vec()[0].as_text()), ("m", Some("hi")));
    }

    #[tokio::test]
    async fn a_command_that_fails_is_an_error() {
        let error = sample("echo 'no key' >&2; exit 3", &request()).await.unwrap_err();
        assert!(error.message.contains("exit status: 3: no key"), "{error}");
    }
}

//! Skills, both roles: a folder with instructions for a model, which a server offers and a host loads when it needs them.
//!
//! ```sh
//! cargo run --package pintle-skills --example skills
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::{error::Error, fs};

use pintle::{Client, Server};
use pintle_skills::{SkillError, SkillReader, Skills};

const SKILL: &str = "---
name: invoices
description: Writes invoices. Use it when the user has to bill somebody.
---

Fill in letter.md, and ask for the amount if it is not known.
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A server would have the folder beside it.
    let folder = std::env::temp_dir().join(format!("pintle-example-skills-{}", std::process::id()));
    fs::create_dir_all(folder.join("invoices"))?;
    fs::write(folder.join("invoices/SKILL.md"), SKILL)?;
    fs::write(folder.join("invoices/letter.md"), "Dear …, please pay …\n")?;

    let skills = Skills::new(&folder)?;
    let server = Server::new("office", "1.0.0").with(skills.clone());

    let office = Client::new("host", "1.0.0").connect(server.in_process()?).await?;
    let reader = SkillReader::new(&office)?;
    for entry in reader.list().await? {
        println!("{}: {}", entry.name(), entry.description());
        // A host asks the user here, and keeps this with the approval.
        println!("approved: {}", entry.fingerprint().is_some());

        let skill = reader.load(&entry).await?;
        println!("instructions: {}", skill.instructions().trim());
        let letter = reader.read_text(&entry, &format!("{}/letter.md", entry.directory())).await?;
        println!("letter: {}", letter.trim());

        // The server changes the file. What the user approved is another one.
        fs::write(folder.join("invoices/letter.md"), "Dear …, please pay me …\n")?;
        skills.reload()?;
        match reader.read(&entry, &format!("{}/letter.md", entry.directory())).await {
            Err(SkillError::Unverified { reason, .. }) => println!("not used: {reason}"),
            other => println!("{other:?}"),
        }
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

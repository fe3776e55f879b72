//! `facts`: writes what the product knows of Kubernetes' own kinds, read off a real API server and its sources.

use atoll_facts::{answers, openapi, protobuf};
use atoll_lab::cli::{Named, exit_code, running};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write what the product knows of Kubernetes' own kinds, read off a real API server and its sources.
#[derive(Parser)]
#[command(
    name = "facts",
    version,
    after_help = "Examples:
  lab up -n 1 --api-only
  facts openapi kube/apimachinery/facts/openapi.tsv
  facts protobuf kube/apimachinery/facts/protobuf.tsv
  facts answers kube/apimachinery/tests/golden"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write shapes, list types, patch strategies and encodings of built-in kinds, from a lab that is up.
    Openapi {
        #[command(flatten)]
        named: Named,
        /// The file to write.
        file: PathBuf,
    },
    /// Send the requests in a folder's `.yaml` files to a lab that is up, and write the answers beside them.
    Answers {
        #[command(flatten)]
        named: Named,
        /// The folder.
        folder: PathBuf,
    },
    /// Write how built-in kinds are encoded in protobuf, from the sources that the lab's Kubernetes is built from.
    Protobuf {
        /// The file to write.
        file: PathBuf,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = run(Arguments::parse().command).await;
    exit_code(outcome.map(|()| ExitCode::SUCCESS))
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Openapi { named, file } => {
            let lab = running(&named.name)?;
            let client = lab.member(1).client().await?;
            let facts = openapi::collect(&client, &lab.layout().dir().join("facts")).await?;
            std::fs::write(&file, facts)?;
            println!("{}", file.display());
        }
        Command::Answers { named, folder } => {
            let client = running(&named.name)?.member(1).client().await?;
            for cases in answers::cases(&folder)? {
                let answers = answers::play(&client, &cases).await?;
                let file = cases.with_extension("json");
                std::fs::write(&file, serde_json::to_string_pretty(&answers)? + "\n")?;
                println!("{}: {} answers", file.display(), answers.len());
            }
        }
        Command::Protobuf { file } => {
            let work = atoll_lab::cache_root().join("facts");
            std::fs::create_dir_all(&work)?;
            std::fs::write(&file, protobuf::collect(&work)?)?;
            println!("{}", file.display());
        }
    }
    Ok(())
}

//! `lab facts`: what the product knows of Kubernetes' own kinds, read off a real API server.

use super::Named;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Facts {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Shapes, list types, patch strategies and encodings of built-in kinds.
    Openapi {
        #[command(flatten)]
        named: Named,
        /// The file to write.
        file: PathBuf,
    },
    /// What the server answers to the cases in the `.yaml` files of a folder; written beside them.
    Answers {
        #[command(flatten)]
        named: Named,
        /// The folder.
        folder: PathBuf,
    },
    /// How built-in kinds are encoded in protobuf; needs no lab, only the sources that it was built from.
    Protobuf {
        /// The file to write.
        file: PathBuf,
    },
}

impl Facts {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Openapi { named, file } => {
                let lab = super::running(&named.name)?;
                let client = lab.member(1).client().await?;
                let facts =
                    atoll_lab::facts::openapi::collect(&client, &lab.layout().dir().join("facts")).await?;
                std::fs::write(&file, facts)?;
                println!("{}", file.display());
            }
            What::Answers { named, folder } => {
                let client = super::running(&named.name)?.member(1).client().await?;
                for cases in atoll_lab::facts::answers::cases(&folder)? {
                    let answers = atoll_lab::facts::answers::play(&client, &cases).await?;
                    let file = cases.with_extension("json");
                    std::fs::write(&file, serde_json::to_string_pretty(&answers)? + "\n")?;
                    println!("{}: {} answers", file.display(), answers.len());
                }
            }
            What::Protobuf { file } => {
                let work = atoll_lab::cache_root().join("facts");
                std::fs::create_dir_all(&work)?;
                std::fs::write(&file, atoll_lab::facts::protobuf::collect(&work)?)?;
                println!("{}", file.display());
            }
        }
        Ok(())
    }
}

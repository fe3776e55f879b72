//! The API on a socket, for trying it out: `cargo run -p atoll-kubeapi --example serve -- DATA-DIR [ADDRESS]`.

use atoll_kubeapi::authn::TokenAuthenticator;
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::server::Server;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options};
use std::path::PathBuf;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("say where the data lies")?);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:6443".to_owned()).parse()?;
    std::fs::create_dir_all(&folder)?;
    let store = Store::open(folder.join("store.redb"))?;
    let now = jiff::Timestamp::now().as_second();
    let pki = Pki::open(&folder, &["127.0.0.1".to_owned(), "localhost".to_owned()], now)?;
    let api = Api::start(store, Options::default().tokens(TokenAuthenticator::new(&pki)?).data_dir(&folder))
        .await?;
    let server = Server::bind(address, &pki).await?;
    let kubeconfig = pki.write_kubeconfig(&folder, &format!("https://{}", server.address()?))?;
    println!("export KUBECONFIG={}", kubeconfig.display());
    server.run(api).await;
    Ok(())
}

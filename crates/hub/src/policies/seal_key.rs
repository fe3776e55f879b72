//! The key of the hub's seals: in a Secret of its own namespace, made once by the first leader.

use aws_lc_rs::rand;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::membership::connect::code;

/// The Secret with the key. Whoever deletes it makes the hub forget what it has brought where: copies stay.
const SECRET: &str = "atoll-seal";
const FIELD: &str = "key";
const LENGTH: usize = 32;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The hub's API can't be read or written.
    #[error("cannot read the key of the hub's seals")]
    Api(#[from] kube::Error),
    /// The Secret is there, and has no key in it.
    #[error("the Secret `{SECRET}` has no key of {LENGTH} bytes")]
    Unusable,
    /// There is no randomness.
    #[error("cannot make a key")]
    Random,
}

/// The key, if there is one.
pub(crate) async fn find(client: &Client, namespace: &str) -> Result<Option<Vec<u8>>, SealError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    api.get_opt(SECRET).await?.map(read).transpose()
}

/// Makes the key.
pub(crate) async fn make(client: &Client, namespace: &str) -> Result<Vec<u8>, SealError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut key = vec![0; LENGTH];
    rand::fill(&mut key).map_err(|_| SealError::Random)?;
    let secret = Secret {
        metadata: ObjectMeta { name: Some(SECRET.to_owned()), ..ObjectMeta::default() },
        data: Some([(FIELD.to_owned(), ByteString(key.clone()))].into()),
        ..Secret::default()
    };
    match api.create(&PostParams::default(), &secret).await {
        Ok(_) => Ok(key),
        // Another replica was faster.
        Err(error) if code(&error) == Some(409) => read(api.get(SECRET).await?),
        Err(error) => Err(error.into()),
    }
}

fn read(secret: Secret) -> Result<Vec<u8>, SealError> {
    let key = secret.data.and_then(|mut data| data.remove(FIELD)).map(|ByteString(key)| key);
    key.filter(|key| key.len() == LENGTH).ok_or(SealError::Unusable)
}

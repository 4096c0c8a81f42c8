//! Checkpoints in blobs. The client's own store (azure_messaging_eventhubs_checkpointstore_blob 0.9.0)
//! is made for version 0.15 and azure_core 1.1, which cannot be built beside version 0.16 and its
//! azure_core 1.2; so this one puts the same blobs by HTTP, with the same conditions.
use crate::client::{IDS, stand};
use azure_core::{
    Error, Result, credentials::Secret, error::ErrorKind, hmac::hmac_sha256, http::Etag, time::parse_rfc7231,
};
use azure_messaging_eventhubs::{
    CheckpointStore,
    models::{Checkpoint, Ownership},
};
use std::collections::HashMap;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const SIGNED: [(&str, &str); 6] =
    [("sv", "2019-12-12"), ("ss", "b"), ("srt", "sco"), ("sp", "rwdlac"), ("se", "2099-01-01"), ("spr", "https,http")];

/// A container of the stand's Azurite.
pub struct Store {
    host: String,
    path: String,  // of the container
    query: String, // the signature of an account
}

struct Answer {
    status: u16,
    headers: HashMap<String, String>, // names in lower case
}

impl Answer {
    fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).cloned()
    }
}

fn failure(text: String) -> Error {
    Error::with_message(ErrorKind::Other, text)
}

/// The signature of an account, as Azure Storage defines it.
fn signature(account: &str, key: &str) -> Result<String> {
    let fields: HashMap<&str, &str> = SIGNED.into();
    let order = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"];
    let values: Vec<&str> = order.iter().map(|name| fields.get(name).copied().unwrap_or("")).collect();
    let text = format!("{account}\n{}\n", values.join("\n"));
    let signed = hmac_sha256(&text, &Secret::new(key.to_string()))?;
    let signed = signed.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let given: Vec<String> = SIGNED.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(format!("{}&sig={signed}", given.join("&")))
}

impl Store {
    pub fn new(container: &str) -> Result<Self> {
        let string = stand("BLOB");
        let part = |name: &str| {
            let found = string.split(';').find_map(|part| part.strip_prefix(name));
            found.ok_or_else(|| failure(format!("no {name} in STAND_BLOB")))
        };
        let place = part("BlobEndpoint=http://")?;
        let (host, path) = place.split_once('/').ok_or_else(|| failure(format!("no account in {place}")))?;
        let query = signature(part("AccountName=")?, part("AccountKey=")?)?;
        Ok(Store { host: host.to_string(), path: format!("/{path}/{container}"), query })
    }

    /// One request without a body, in HTTP/1.0, so that the connection ends with the answer.
    async fn call(&self, method: &str, name: &str, query: &str, headers: &[(&str, String)]) -> Result<Answer> {
        let mut request = format!("{method} {}{name}?{query}{} HTTP/1.0\r\n", self.path, self.query);
        let usual =
            [("Host", self.host.clone()), ("Content-Length", "0".into()), ("x-ms-version", "2021-10-04".into())];
        for (name, value) in usual.iter().chain(headers) {
            request += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(&self.host).await?;
        stream.write_all(format!("{request}\r\n").as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| failure(format!("no status in {text:.200}")))?;
        let fields = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(": "));
        Ok(Answer { status, headers: fields.map(|(name, value)| (name.to_lowercase(), value.into())).collect() })
    }

    /// The same, which must be answered by one of these.
    async fn must(
        &self,
        expected: &[u16],
        method: &str,
        name: &str,
        query: &str,
        headers: &[(&str, String)],
    ) -> Result<Answer> {
        let answer = self.call(method, name, query, headers).await?;
        if !expected.contains(&answer.status) {
            let code = answer.header("x-ms-error-code");
            return Err(failure(format!("{method} {name}: status {}, {code:?}", answer.status)));
        }
        Ok(answer)
    }

    pub async fn create(&self) -> Result<()> {
        self.must(&[201], "PUT", "", "restype=container&", &[]).await.map(|_| ())
    }

    /// What is known of a blob, or nothing.
    async fn look(&self, name: &str) -> Result<Option<Answer>> {
        let answer = self.must(&[200, 404], "HEAD", &format!("/{name}"), "", &[]).await?;
        Ok((answer.status == 200).then_some(answer))
    }

    async fn put(&self, name: &str, headers: &[(&str, String)]) -> Result<Answer> {
        let headers = [&[("x-ms-blob-type", "BlockBlob".to_string())], headers].concat();
        self.must(&[201, 409, 412], "PUT", &format!("/{name}"), "", &headers).await
    }

    /// Claims one partition, unless somebody was faster.
    async fn claim(&self, wanted: &Ownership) -> Result<Option<Ownership>> {
        let o = wanted.clone();
        let name = Ownership::get_ownership_name(
            &o.fully_qualified_namespace,
            &o.event_hub_name,
            &o.consumer_group,
            &o.partition_id,
        )?;
        let owner = ("x-ms-meta-ownerid", o.owner_id.clone().unwrap_or_default());
        let answer = match &o.etag {
            Some(etag) => {
                let headers = [owner, ("If-Match", etag.to_string())];
                self.must(&[200, 412], "PUT", &format!("/{name}"), "comp=metadata&", &headers).await?
            }
            None => self.put(&name, &[owner, ("If-None-Match", "*".into())]).await?,
        };
        if answer.status >= 400 {
            return Ok(None);
        }
        Ok(Some(known(o, &answer)?))
    }
}

/// The ownership with what the blob's answer says.
fn known(ownership: Ownership, answer: &Answer) -> Result<Ownership> {
    let modified = answer.header("last-modified").map(|time| parse_rfc7231(&time)).transpose()?;
    let etag = answer.header("etag").map(Etag::from);
    Ok(Ownership { etag, last_modified_time: modified, ..ownership })
}

#[async_trait::async_trait]
impl CheckpointStore for Store {
    async fn claim_ownership(&self, ownerships: &[Ownership]) -> Result<Vec<Ownership>> {
        let mut claimed = Vec::new();
        for wanted in ownerships {
            claimed.extend(self.claim(wanted).await?);
        }
        Ok(claimed)
    }

    async fn list_checkpoints(&self, namespace: &str, hub: &str, group: &str) -> Result<Vec<Checkpoint>> {
        let mut all = Vec::new();
        for id in IDS {
            let name = Checkpoint::get_checkpoint_blob_name(namespace, hub, group, id)?;
            let Some(answer) = self.look(&name).await? else { continue };
            let number = answer.header("x-ms-meta-sequencenumber").and_then(|number| number.parse().ok());
            all.push(Checkpoint {
                fully_qualified_namespace: namespace.into(),
                event_hub_name: hub.into(),
                consumer_group: group.into(),
                partition_id: id.into(),
                offset: answer.header("x-ms-meta-offset"),
                sequence_number: number,
            });
        }
        Ok(all)
    }

    async fn list_ownerships(&self, namespace: &str, hub: &str, group: &str) -> Result<Vec<Ownership>> {
        let mut all = Vec::new();
        for id in IDS {
            let name = Ownership::get_ownership_name(namespace, hub, group, id)?;
            let Some(answer) = self.look(&name).await? else { continue };
            let ownership = Ownership {
                fully_qualified_namespace: namespace.into(),
                event_hub_name: hub.into(),
                consumer_group: group.into(),
                partition_id: id.into(),
                owner_id: answer.header("x-ms-meta-ownerid"),
                ..Default::default()
            };
            all.push(known(ownership, &answer)?);
        }
        Ok(all)
    }

    async fn update_checkpoint(&self, c: Checkpoint) -> Result<()> {
        let name = Checkpoint::get_checkpoint_blob_name(
            &c.fully_qualified_namespace,
            &c.event_hub_name,
            &c.consumer_group,
            &c.partition_id,
        )?;
        let offset = ("x-ms-meta-offset", c.offset.unwrap_or_default());
        let number = ("x-ms-meta-sequencenumber", c.sequence_number.unwrap_or_default().to_string());
        self.put(&name, &[offset, number]).await.map(|_| ())
    }
}

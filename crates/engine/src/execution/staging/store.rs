//! DataFusion's way into a staging: an object store that can only be written to.
//!
//! Each write runs on a blocking thread and holds the staging until it has ended, also when the task that waits for it
//! was aborted. The names of objects are names below the place's rows, whatever the target is called.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};

use super::Staging;

/// The store of one staging.
#[derive(Debug)]
pub(super) struct StagingStore(pub(super) Arc<Staging>);

impl fmt::Display for StagingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "staging for {}", self.0.target)
    }
}

impl Staging {
    /// Makes the file of an object.
    fn create_object(&self, location: &Path) -> io::Result<File> {
        let mut path = self.rows.clone();
        path.extend(location.parts().map(|part| part.as_ref().to_string()));
        fs::create_dir_all(super::publish::parent(&path))?;
        File::create_new(path)
    }
}

/// Runs a write on a blocking thread; the staging lives until it has ended.
async fn write<T: Send + 'static>(
    staging: &Arc<Staging>,
    work: impl FnOnce(&Staging) -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let staging = staging.clone();
    let written = tokio::task::spawn_blocking(move || work(&staging).map_err(|error| staging.failed(error)));
    written.await?.map_err(|source| Error::Generic { store: "staging", source: Box::new(source) })
}

fn write_at(file: &File, payload: &PutPayload, mut offset: u64) -> io::Result<()> {
    for bytes in payload {
        file.write_all_at(bytes, offset)?;
        offset += bytes.len() as u64;
    }
    Ok(())
}

fn done() -> PutResult {
    PutResult { e_tag: None, version: None }
}

fn unsupported(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.to_string(), implementer: "staging".to_string() }
}

#[async_trait]
impl ObjectStore for StagingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, _: PutOptions) -> Result<PutResult> {
        let location = location.clone();
        write(&self.0, move |staging| write_at(&staging.create_object(&location)?, &payload, 0)).await?;
        Ok(done())
    }

    async fn put_multipart_opts(&self, location: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let location = location.clone();
        let file = write(&self.0, move |staging| staging.create_object(&location)).await?;
        Ok(Box::new(Upload { staging: self.0.clone(), file: Arc::new(file), offset: 0 }))
    }

    async fn get_opts(&self, _: &Path, _: GetOptions) -> Result<GetResult> {
        Err(unsupported("get"))
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        futures::stream::once(async { Err(unsupported("delete")) }).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        futures::stream::once(async { Err(unsupported("list")) }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(unsupported("list"))
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(unsupported("copy"))
    }
}

/// A file that is written part by part.
#[derive(Debug)]
struct Upload {
    staging: Arc<Staging>,
    file: Arc<File>,
    offset: u64,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let (staging, file, offset) = (self.staging.clone(), self.file.clone(), self.offset);
        self.offset += payload.content_length() as u64;
        async move { write(&staging, move |_| write_at(&file, &payload, offset)).await }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        Ok(done())
    }

    async fn abort(&mut self) -> Result<()> {
        Ok(())
    }
}

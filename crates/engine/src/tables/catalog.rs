//! The default schema: the session's tables by name, and any file by its path.
//!
//! A name is found as written, else without regard to case if only one table then fits. A name that is none of the
//! tables' but looks like a path opens that file (`SELECT … FROM 'orders.parquet'`); such tables are remembered, so that
//! their columns stay cached, but not listed. File tables look at their files again each time they are found.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use futures::future::BoxFuture;
use parking_lot::RwLock;

use crate::Error;
use crate::error::IntoHost;
use crate::tables::external::listing;
use crate::tables::files::FileProvider;
use crate::tables::inspected::Inspected;
use crate::tables::location::Location;
use crate::tables::provider_future::boxed;

/// The tables of the default schema.
#[derive(Default)]
pub(crate) struct Tables {
    named: RwLock<BTreeMap<String, Arc<dyn TableProvider>>>,
    paths: RwLock<HashMap<String, Arc<dyn TableProvider>>>,
    state: OnceLock<Weak<RwLock<SessionState>>>,
    /// Files of tables that are DataFusion's own.
    inspected: Inspected,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.named.read().keys()).finish()
    }
}

impl Tables {
    /// Tells the state with which files are opened; the state owns this catalogue, so only weakly.
    pub(crate) fn attach(&self, state: Weak<RwLock<SessionState>>) {
        // A catalogue belongs to one session: a second attachment cannot happen.
        let _ = self.state.set(state);
    }

    /// Returns the tables by name.
    pub(crate) fn all(&self) -> Vec<(String, Arc<dyn TableProvider>)> {
        self.named.read().iter().map(|(name, table)| (name.clone(), table.clone())).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let named = self.named.read();
        named.get(name).cloned().or_else(|| {
            let mut near = named.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
            match (near.next(), near.next()) {
                (Some((_, table)), None) => Some(table.clone()),
                _ => None,
            }
        })
    }

    fn state(&self) -> Result<SessionState, Error> {
        let state = self.state.get().and_then(Weak::upgrade);
        let state = state.ok_or_else(|| Error::internal("the session ended while a file was opened"))?;
        let state = state.read().clone();
        Ok(state)
    }
}

impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        self.named.read().keys().cloned().collect()
    }

    fn table<'s: 'a, 'n: 'a, 'a>(&'s self, name: &'n str) -> BoxFuture<'a, Result<Option<Arc<dyn TableProvider>>>> {
        boxed(async move {
            let known = self.find(name).or_else(|| self.paths.read().get(name).cloned());
            if let Some(table) = known {
                if let Some(files) = table.downcast_ref::<FileProvider>() {
                    files.refresh(&self.state().into_host()?).await.into_host()?;
                } else if let Some(listing) = listing(&table) {
                    self.inspected.check_table(listing, &self.state().into_host()?).await.into_host()?;
                }
                return Ok(Some(table));
            }
            if !Location::looks_like(name) {
                return Ok(None);
            }
            let opened = FileProvider::open(Location::new(name), &self.state().into_host()?).await.into_host()?;
            let table: Arc<dyn TableProvider> = Arc::new(opened);
            self.paths.write().insert(name.to_string(), table.clone());
            Ok(Some(table))
        })
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.named.write().insert(name, table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.named.write().remove(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

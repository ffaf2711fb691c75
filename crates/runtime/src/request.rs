//! The request to which an action belongs. It travels beside the action, and the action's audit entry names it.

use std::sync::Arc;

tokio::task_local! {
    static REQUEST: Arc<str>;
}

/// Runs `action` as part of the request `id`: what it writes into the audit names it.
pub async fn within<T>(id: impl Into<Arc<str>>, action: impl Future<Output = T>) -> T {
    REQUEST.scope(id.into(), action).await
}

/// Takes the present request along into a task of its own.
pub fn carry<T>(action: impl Future<Output = T>) -> impl Future<Output = T> {
    let present = REQUEST.try_with(Arc::clone).ok();
    async move {
        match present {
            Some(id) => REQUEST.scope(id, action).await,
            None => action.await,
        }
    }
}

/// The present request's id.
pub(crate) fn current() -> Option<String> {
    REQUEST.try_with(|id| id.to_string()).ok()
}

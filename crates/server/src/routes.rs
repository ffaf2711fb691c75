//! The table of routes: every route of the API with the permission it needs, in one place.

mod admin;
mod audit;
mod batches;
mod dead_letters;
mod definitions;
mod deployments;
mod events;
mod forget;
mod identity;
mod incidents;
mod instance_control;
mod instances;
mod jobs;
mod messages;
mod observe;
mod openapi;
mod parts;
mod repair;
mod seen;
mod settings;
mod shells;
mod signals;
mod user_tasks;

pub(crate) use shells::reload_everything;

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, on};

use crate::App;
use crate::auth::{self, Keyed, Needs, Permission, Reach, Tenancy};

/// One row of the table.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path under the base, and under `/shells/{shell}` unless it is about shells itself.
    pub path: &'static str,
    /// What the caller must be allowed.
    pub permission: Permission,
    /// What it is about.
    pub reach: Reach,
    /// How it is kept inside a caller's tenants.
    pub tenancy: Tenancy,
    register: Register,
}

/// Adds a route to a router under a full path.
type Register = Box<dyn Fn(&App, &Route, Router<App>, &str) -> Router<App>>;

impl Route {
    fn reaching(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// The key in the path belongs to a tenant.
    fn of(mut self, keyed: Keyed) -> Self {
        self.tenancy = Tenancy::Key(keyed);
        self
    }

    /// The handler leaves out what is of all tenants.
    fn of_state(mut self) -> Self {
        self.tenancy = Tenancy::State;
        self
    }

    fn about_caller(mut self) -> Self {
        self.tenancy = Tenancy::Own;
        self
    }

    /// The handler asks [`auth::Tenants`].
    fn in_tenant(mut self) -> Self {
        self.tenancy = Tenancy::Asked;
        self
    }
}

/// Every route of the API.
pub fn table() -> Vec<Route> {
    use Permission::*;
    vec![
        post("/deployments", DefinitionsWrite, deployments::deploy).in_tenant(),
        get("/process-definitions", DefinitionsRead, definitions::list).in_tenant(),
        get("/process-definitions/{key}", DefinitionsRead, definitions::one).of(Keyed::Definition),
        get(
            "/process-definitions/{key}/xml",
            DefinitionsRead,
            definitions::xml,
        )
        .of(Keyed::Definition),
        delete(
            "/process-definitions/{key}",
            DefinitionsWrite,
            definitions::unregister,
        )
        .of(Keyed::Definition),
        get(
            "/process-definitions/{key}/state",
            DefinitionsRead,
            definitions::state,
        )
        .of(Keyed::Definition),
        get("/starters", DefinitionsRead, definitions::starters).in_tenant(),
        post("/process-instances", InstancesWrite, instances::start).in_tenant(),
        get("/process-instances", InstancesRead, instances::list).in_tenant(),
        get("/process-instances/{key}", InstancesRead, instances::one).of(Keyed::Instance),
        get(
            "/process-instances/{key}/history",
            InstancesRead,
            instances::history,
        )
        .of(Keyed::Instance),
        get("/process-instances/{key}/events", InstancesRead, observe::one).of(Keyed::Instance),
        get("/events", InstancesRead, observe::all).in_tenant(),
        get(
            "/process-instances/{key}/variables",
            InstancesRead,
            instances::variables,
        )
        .of(Keyed::Instance),
        patch(
            "/process-instances/{key}/variables",
            InstancesWrite,
            repair::set_variables,
        )
        .of(Keyed::Instance),
        post(
            "/process-instances/{key}/cancel",
            InstancesWrite,
            instance_control::cancel,
        )
        .of(Keyed::Instance),
        post(
            "/process-instances/{key}/suspend",
            InstancesWrite,
            instance_control::suspend,
        )
        .of(Keyed::Instance),
        post(
            "/process-instances/{key}/resume",
            InstancesWrite,
            instance_control::resume,
        )
        .of(Keyed::Instance),
        get(
            "/process-instances/{key}/why",
            InstancesRead,
            instance_control::why,
        )
        .of(Keyed::Instance),
        post("/process-instances/forget", InstancesWrite, forget::forget).in_tenant(),
        get("/process-instances/export", InstancesRead, forget::export).in_tenant(),
        get("/process-settings/{name}", DefinitionsRead, settings::show).in_tenant(),
        put("/process-settings/{name}", DefinitionsWrite, settings::set).in_tenant(),
        post("/batches", InstancesWrite, batches::create).in_tenant(),
        get("/batches", InstancesRead, batches::list).in_tenant(),
        get("/batches/{key}", InstancesRead, batches::one).of(Keyed::Batch),
        get("/batches/{key}/items", InstancesRead, batches::items).of(Keyed::Batch),
        post("/batches/{key}/pause", InstancesWrite, batches::pause).of(Keyed::Batch),
        post("/batches/{key}/resume", InstancesWrite, batches::resume).of(Keyed::Batch),
        post("/batches/{key}/cancel", InstancesWrite, batches::cancel).of(Keyed::Batch),
        post(
            "/process-instances/{key}/modification",
            InstancesWrite,
            repair::modify,
        )
        .of(Keyed::Instance),
        post(
            "/process-instances/{key}/migration",
            InstancesWrite,
            repair::migrate,
        )
        .of(Keyed::Instance),
        post(
            "/process-instances/{key}/restart",
            InstancesWrite,
            repair::restart,
        )
        .of(Keyed::Instance),
        post(
            "/process-definitions/migration-check",
            InstancesRead,
            repair::check_migration_to_file,
        )
        .in_tenant(),
        post(
            "/process-definitions/{key}/migration-check",
            InstancesRead,
            repair::check_migration,
        )
        .of(Keyed::Definition),
        post("/messages", MessagesWrite, messages::publish).in_tenant(),
        post("/signals", MessagesWrite, signals::broadcast).in_tenant(),
        post("/jobs/activate", JobsWork, jobs::activate).in_tenant(),
        post("/jobs/{key}/complete", JobsWork, jobs::complete).of(Keyed::Job),
        post("/jobs/{key}/fail", JobsWork, jobs::fail).of(Keyed::Job),
        post("/jobs/{key}/error", JobsWork, jobs::error).of(Keyed::Job),
        get("/user-tasks", TasksRead, user_tasks::list).in_tenant(),
        post("/user-tasks/{key}/claim", TasksWrite, user_tasks::claim).of(Keyed::UserTask),
        post("/user-tasks/{key}/complete", TasksWrite, user_tasks::complete).of(Keyed::UserTask),
        get("/incidents", IncidentsRead, incidents::list).in_tenant(),
        post("/incidents/{key}/retry", IncidentsWrite, incidents::retry).of(Keyed::Incident),
        post("/incidents/{key}/resolve", IncidentsWrite, repair::resolve).of(Keyed::Incident),
        get("/audit", AuditRead, audit::list),
        get("/identity", RuntimeView, identity::show)
            .reaching(Reach::Known)
            .about_caller(),
        get("/shells", RuntimeView, shells::list)
            .reaching(Reach::Known)
            .of_state(),
        post("/shells/reload", RuntimeControl, shells::reload_all).reaching(Reach::Host),
        post("/shells/{shell}/reload", RuntimeControl, shells::reload),
        post("/shells/{shell}/retire", RuntimeControl, shells::retire),
        get("/dead-letters", RuntimeView, dead_letters::list),
        post("/dead-letters/{key}/replay", RuntimeControl, dead_letters::replay),
        get("/admin/workflow-runtime/partial-pauses", RuntimeView, parts::list).in_tenant(),
        post(
            "/admin/workflow-runtime/partial-pauses/pause",
            RuntimePause,
            parts::pause,
        )
        .in_tenant(),
        post(
            "/admin/workflow-runtime/partial-pauses/resume",
            RuntimePause,
            parts::resume,
        )
        .in_tenant(),
        get("/admin/workflow-runtime/status", RuntimeView, admin::status).of_state(),
        get(
            "/admin/workflow-runtime/drain-plan",
            RuntimeView,
            admin::drain_plan,
        ),
        get("/admin/workflow-runtime/events", RuntimeView, events::stream).of_state(),
        post("/admin/workflow-runtime/pause", RuntimePause, admin::pause),
        post("/admin/workflow-runtime/resume", RuntimePause, admin::resume),
        post(
            "/admin/workflow-runtime/force-drain",
            RuntimeControl,
            admin::force_drain,
        ),
        post(
            "/admin/workflow-runtime/sources/{name}/force-stop",
            RuntimeControl,
            admin::force_stop_source,
        ),
    ]
}

/// The API as a router: every row under the base, and again under the base with a shell.
pub(crate) fn api(app: &App) -> Router<App> {
    let base = &app.options.base;
    let described = Router::new().route(
        &format!("{base}/openapi.json"),
        axum::routing::get(openapi::document),
    );
    table().into_iter().fold(described, |router, route| {
        let router = (route.register)(app, &route, router, &format!("{base}{}", route.path));
        // What is no shell's stands once.
        if route.reach != Reach::Shell || route.path.starts_with("/shells") {
            return router;
        }
        (route.register)(
            app,
            &route,
            router,
            &format!("{base}/shells/{{shell}}{}", route.path),
        )
    })
}

fn get<H: Handler<T, App> + Sync, T: 'static>(
    path: &'static str,
    permission: Permission,
    handler: H,
) -> Route {
    row(Method::GET, MethodFilter::GET, path, permission, handler)
}

fn post<H: Handler<T, App> + Sync, T: 'static>(
    path: &'static str,
    permission: Permission,
    handler: H,
) -> Route {
    row(Method::POST, MethodFilter::POST, path, permission, handler)
}

fn put<H: Handler<T, App> + Sync, T: 'static>(
    path: &'static str,
    permission: Permission,
    handler: H,
) -> Route {
    row(Method::PUT, MethodFilter::PUT, path, permission, handler)
}

fn patch<H: Handler<T, App> + Sync, T: 'static>(
    path: &'static str,
    permission: Permission,
    handler: H,
) -> Route {
    row(Method::PATCH, MethodFilter::PATCH, path, permission, handler)
}

fn delete<H: Handler<T, App> + Sync, T: 'static>(
    path: &'static str,
    permission: Permission,
    handler: H,
) -> Route {
    row(Method::DELETE, MethodFilter::DELETE, path, permission, handler)
}

fn row<H: Handler<T, App> + Sync, T: 'static>(
    method: Method,
    filter: MethodFilter,
    path: &'static str,
    permission: Permission,
    handler: H,
) -> Route {
    let register = move |app: &App, route: &Route, router: Router<App>, path: &str| {
        let needs = Needs {
            permission: route.permission,
            reach: route.reach,
            tenancy: route.tenancy,
        };
        let guard = from_fn_with_state((app.clone(), needs), auth::check);
        router.route(path, on(filter, handler.clone()).route_layer(guard))
    };
    Route {
        method,
        path,
        permission,
        reach: Reach::Shell,
        tenancy: Tenancy::Whole,
        register: Box::new(register),
    }
}

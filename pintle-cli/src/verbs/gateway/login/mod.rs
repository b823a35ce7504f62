//! Logins of principals to targets: each has its own account there.

mod entry;
mod login_fleet;
mod login_question;
mod login_tool;
mod page;
mod pages;
mod principal_login;
mod principal_store;

pub(super) use entry::{LoginClientEntry, LoginEntry};
pub(super) use login_fleet::LoginFleet;
pub(super) use login_question::ask_to_log_in;
pub(super) use login_tool::{LoginTool, elicitation_id, login_required};
pub(super) use pages::{LOGIN_PATH, LoginPages};
pub(super) use principal_login::{LoginTarget, PrincipalLogin, PrincipalLogins};

//! Answers to input requests of servers: forms, URLs, sampling, roots.

mod answer;
mod answer_tasks;
mod custom;
mod elicit_url;
mod handlers;
mod progress;
mod report;
mod roots;
mod task_table;

pub use answer::{Answer, IntoReply, Question};
pub use answer_tasks::AnswerTasks;
pub use elicit_url::ElicitUrl;
pub use report::Report;
pub use roots::{IntoRoot, IntoRoots, Roots};

pub(super) use answer::Asker;
pub(super) use custom::custom_handler;
pub(super) use handlers::{BoxFuture, Handlers, caught, handler};
pub use handlers::{ForwardQuestion, QuestionHandler, refuse_questions};
pub(super) use progress::QuestionProgress;
pub(super) use roots::RootsObserver;
pub(super) use task_table::{SessionTasks, TaskTable};

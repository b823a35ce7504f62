use super::object;

object! {
    /// The value of [`keys::RELATED_TASK`](crate::keys::RELATED_TASK): the task to which a message belongs.
    #[derive(Debug, Default)]
    RelatedTask {
        /// The id of the task.
        task_id: String,
        ..
    }
    /// The task `task_id`.
    new(task_id: impl Into<String>)
}

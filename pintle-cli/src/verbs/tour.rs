use crate::{failure::Failure, output::own_stdout, tour};

pub(super) async fn run() -> Result<(), Failure> {
    let (mut out, paint) = own_stdout();
    match tour::run(&mut out, paint).await {
        Ok(()) => Ok(()),
        Err(pintle::Error::Io(error)) => Err(Failure::unwritten(&error)),
        Err(error) => Err(Failure::internal(&error)),
    }
}

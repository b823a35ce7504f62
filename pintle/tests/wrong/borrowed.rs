//! Arguments by reference, and of no one type.

#[pintle::tool]
async fn shout(text: &str) -> String {
    text.to_uppercase()
}

#[pintle::tool]
async fn sum(numbers: &[i64]) -> i64 {
    numbers.iter().sum()
}

#[pintle::tool]
async fn print(what: impl ToString) -> String {
    what.to_string()
}

#[pintle::tool]
async fn echo<T: ToString>(what: T) -> String {
    what.to_string()
}

fn main() {}

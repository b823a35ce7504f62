//! Methods, and what is wrong with them.

struct Notes(Vec<String>);

impl Notes {
    #[pintle::tool]
    async fn count(&self) -> usize {
        self.0.len()
    }
}

struct Shelf(Vec<String>);

#[pintle::handlers]
impl Shelf {
    #[tool]
    async fn put(&mut self, book: String) {
        self.0.push(book);
    }
}

struct Empty;

#[pintle::handlers]
impl Empty {
    fn nothing(&self) {}
}

fn main() {}

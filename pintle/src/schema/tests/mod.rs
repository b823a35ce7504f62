mod bounds;
mod defaults;
mod refused;
mod table;

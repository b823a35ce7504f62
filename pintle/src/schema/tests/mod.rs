mod bounds;
mod defaults;
mod official;
mod refused;
mod table;

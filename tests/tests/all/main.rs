//! The end-to-end tests, in one binary: most of the time of building them is linking the program. Each file holds the
//! promises of one subject.

mod bad_input;
mod broken_rows;
mod code_training;
mod conformance;
mod doctor;
mod env_commands;
mod families;
mod files;
mod forge_commands;
mod forge_rows;
mod forge_tasks;
mod forge_words;
mod forge_writing;
mod frozen_contract;
mod hotpotqa;
mod http_gate;
mod interpreters;
mod javascript_plugins;
mod misbehaving_guests;
mod plugin_build;
mod plugin_commands;
mod preparing;
mod python_plugins;
mod registry;
mod resuming;
mod run_library;
mod script_training;
mod security_page;
mod serve;
mod serve_plugins;
mod shipped_plugins;
mod sql_result;
mod tools_gate;
mod training;
mod users;

//! Configuration sources: file bodies and named environment.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peri_fuzz::edit::check(data));

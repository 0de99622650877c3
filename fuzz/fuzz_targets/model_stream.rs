#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peri_fuzz::model_stream::check(data));

//! Compiles a loop for AVX-512, AVX2 and the baseline, and calls the best that this CPU has.

/// Defines a function whose body is compiled three times; the call chooses by what the CPU has.
macro_rules! dispatch {
    ($(#[$doc:meta])* pub fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $result:ty $body:block) => {
        $(#[$doc])*
        pub fn $name($($argument: $kind),*) -> $result {
            #[inline(always)]
            fn body($($argument: $kind),*) -> $result $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx512($($argument: $kind),*) -> $result {
                    body($($argument),*)
                }
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2($($argument: $kind),*) -> $result {
                    body($($argument),*)
                }
                let bits = is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("avx2");
                if bits
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512cd")
                {
                    // SAFETY: the CPU has every feature the function was compiled for, as just detected.
                    return unsafe { avx512($($argument),*) };
                }
                if bits {
                    // SAFETY: as above.
                    return unsafe { avx2($($argument),*) };
                }
            }
            body($($argument),*)
        }
    };
}

pub(crate) use dispatch;

//! Compiles a loop for AVX-512, AVX2 and the baseline, and picks one at run time.
//!
//! [`simd!`] takes an ordinary function whose body is a plain loop. The compiler vectorises the same body three times;
//! the wrapper calls the best version that this CPU has.

/// The widest instruction set used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What every CPU of this architecture has.
    Portable,
    /// 256-bit vectors and bit manipulation.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

/// Returns the level that this CPU has. The standard library keeps what it detects, so that this costs a few loads.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn level() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Portable,
    }
}

/// Returns the level that this CPU has.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn level() -> Level {
    Level::Portable
}

/// Defines functions compiled for each [`Level`]; generic parameters are written `<T: Trait>`.
macro_rules! simd {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($g:ident : $bound:path),+>)? ($($arg:ident : $type:ty),* $(,)?) $(-> $ret:ty)? $body:block)+) => {$(
        $(#[$meta])*
        #[inline]
        $vis fn $name $(<$($g: $bound),+>)? ($($arg: $type),*) $(-> $ret)? {
            #[inline(always)]
            fn portable $(<$($g: $bound),+>)? ($($arg: $type),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,fma")]
            fn avx2 $(<$($g: $bound),+>)? ($($arg: $type),*) $(-> $ret)? { portable($($arg),*) }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt,lzcnt,fma")]
            fn avx512 $(<$($g: $bound),+>)? ($($arg: $type),*) $(-> $ret)? { portable($($arg),*) }
            match $crate::simd::level() {
                // SAFETY: `level` returns this only where the CPU has every feature named above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
                _ => portable($($arg),*),
            }
        }
    )+};
}
pub(crate) use simd;

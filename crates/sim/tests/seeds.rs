//! The seeds of `make test`, in parts that run side by side. More of them: `make sim SEEDS=n FROM=k`.

/// How many seeds each part has.
const PART: u64 = 50;

fn all_hold(part: u64) {
    let first = 1 + part * PART;
    for seed in first..first + PART {
        let run = tidegate_sim::run(seed);
        assert!(run.broken.is_empty(), "{}", run.report());
    }
}

macro_rules! parts {
    ($($name:ident $part:literal)*) => {
        $(
            #[test]
            fn $name() {
                all_hold($part);
            }
        )*
    };
}

parts! {
    the_laws_hold_in_seeds_1_to_50 0
    the_laws_hold_in_seeds_51_to_100 1
    the_laws_hold_in_seeds_101_to_150 2
    the_laws_hold_in_seeds_151_to_200 3
    the_laws_hold_in_seeds_201_to_250 4
    the_laws_hold_in_seeds_251_to_300 5
}

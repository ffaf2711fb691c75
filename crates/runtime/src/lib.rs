//! The embeddable Tidegate runtime: gate, cycles, ingress, drain, recovery

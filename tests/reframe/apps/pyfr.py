"""PyFR: a vortex crosses a periodic square on all ranks; form, mass and energy stay."""

"""XProf's own tables, by its rules and with its faults, for users who compare: `roofline --xprof VERSION`."""

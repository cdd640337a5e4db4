"""Tools, rewards and environments of rlf-host for other trainers. One module for each, which imports its package only when
it is used:

| trainer | module | what it takes |
|---|---|---|
| verl | `rlf_host.adapters.verl` | function tools, a reward function |
| TRL | `rlf_host.adapters.trl` | reward functions, an environment class |
| verifiers | `rlf_host.adapters.verifiers` | a toolset, rewards of a task |
"""

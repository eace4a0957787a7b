"""What needs more than the core installs: each module names its extra, the core none of them."""

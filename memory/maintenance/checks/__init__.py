"""Whether what is stored still keeps the promises: one module per subject, one pass per tenant."""

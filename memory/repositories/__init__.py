"""The SQL, by subject. A function takes a connection, returns types, and never commits.

A function of one statement sets the tenant in it; one of several is called in a transaction whose
tenant :func:`memory.repositories.tenancy.enter` has set.
"""

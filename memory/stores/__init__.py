"""Where records live: implementations of :class:`memory.ports.Store`."""

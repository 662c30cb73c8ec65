"""MCP: the tools of the façade over streamable HTTP and stdio. Only `server` and `stdio` load the SDK."""

export type { McpServers } from '../core/agent/definition/agent.ts'
export { mcpServer } from '../core/tools/mcp/mcp-server.ts'
export type { HttpServerOptions, McpServerOptions, StdioServerOptions } from '../core/tools/mcp/options.ts'

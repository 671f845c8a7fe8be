export type { McpServers } from '../agent/definition/agent.ts'
export { mcpServer } from '../tools/mcp/mcp-server.ts'
export type { HttpServerOptions, McpServerOptions, StdioServerOptions } from '../tools/mcp/options.ts'

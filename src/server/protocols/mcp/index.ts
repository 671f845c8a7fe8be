export type {
  McpAgentOptions,
  McpArguments,
  McpCall,
  McpOptions,
  McpPrompt,
  McpPromptArgument,
  McpReader,
  McpResource,
  McpTool,
} from './offer.ts'
export { McpRefusal } from './read.ts'
export { recipePrompt } from './recipe-prompts.ts'
export { type ServeMcpOptions, serveMcp, signingKey } from './serve.ts'
export { type ToolAgentOptions, toolAgent } from './tool-agent.ts'

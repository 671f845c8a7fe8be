export { McpRefusal } from './offer/client.ts'
export type {
  McpArguments,
  McpCall,
  McpPrompt,
  McpPromptArgument,
  McpReader,
  McpResource,
  McpTool,
} from './offer/offer.ts'
export type { McpAgentOptions, McpOptions } from './offer/options.ts'
export { recipePrompt } from './recipe-prompts.ts'
export { signingKey } from './signing-key.ts'
export { type ServeMcpOptions, serveMcp } from './stdio.ts'
export { type ToolAgentOptions, toolAgent } from './tool-agent.ts'

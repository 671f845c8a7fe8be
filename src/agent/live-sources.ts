import type { ToolSource } from '../tool/source/source.ts'
import type { AgentCore } from './agent.ts'

/** Must it be started? */
export function isLive({ tools }: ToolSource): boolean {
  return tools === null
}

/** Has the agent sources that must be started before its first step? */
export function hasLiveSources({ sources }: AgentCore): boolean {
  if (sources.size === 0) return false
  return [...sources.values()].some(isLive)
}

import { DEFAULT_USE, type Grant } from '../grant/grant.ts'
import type { AgentCore } from './agent.ts'

const USE_WITH_FILES: readonly string[] = Object.freeze([...DEFAULT_USE, 'file.*:**'])

/**
 * An agent's own grant where it runs. One that inherits files and does not say itself what it may use takes what its host
 * passes on of them; at the root there is no host, and nothing to take.
 */
export function grantAt({ grant, files }: Pick<AgentCore, 'grant' | 'files'>, depth: number): Grant | undefined {
  if (files === null || depth === 0 || grant?.use !== undefined) return grant
  return { ...grant, use: USE_WITH_FILES }
}

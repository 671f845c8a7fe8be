import type { AgentCore } from './agent/definition.ts'
import type { ReadInput } from './agent/input.ts'
import { ConflictError, DefinitionError, InputError, NotFoundError } from './base/error.ts'
import type { Conversation, Id } from './graph/rows.ts'
import type { StartOptions } from './options.ts'

/** A conversation is its agent's; one that was delegated is its host's to continue. */
export function checkOwner(conversation: Conversation | undefined, id: Id, agent: AgentCore): void {
  if (conversation === undefined) throw new NotFoundError('not_found', `There is no conversation ${id} in this store.`)
  if (conversation.type === 'sub_agent') {
    throw new ConflictError('conflict', `The conversation ${id} is a subagent's: only its host can go on with it.`)
  }
  const { name } = conversation.agent
  if (name !== agent.name)
    throw new ConflictError('conflict', `The conversation ${id} is of "${name}", not "${agent.name}".`)
}

/** A delegation is its host's: it has no conversation, owner or title of its own to be named. */
export function checkInside({ abortSignal, ...options }: StartOptions): void {
  const [key] = Object.entries(options).find(([, value]) => value !== undefined) ?? []
  if (key === undefined) return
  const message = `run(agent, input, { ${key} }): inside a tool this is a delegation of the running call; only abortSignal can be given.`
  throw new DefinitionError('definition', message)
}

export function wrongInput(agent: AgentCore, { error, issues }: Extract<ReadInput, { ok: false }>): InputError {
  return new InputError('invalid_input', `The input of "${agent.name}" is wrong. ${error}`, { details: { issues } })
}

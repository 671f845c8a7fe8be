import type { Json } from '../../base/json.ts'
import type { Model } from '../../model/model.ts'
import type { AgentCore } from '../definition/agent.ts'

/** Everything beside its own data that an agent is built from. */
export interface InlineServices {
  /** The host, if the agent takes something over; undefined if this process has no code for one. */
  readonly host: () => AgentCore | undefined
  readonly modelNamed: (name: string) => Model
}

/** Builds agents from data. Files that people own are such data, so the room of recipes is what builds them. */
export interface InlineCode {
  /** The agent that a row holds; undefined where this process has no code of its host. */
  inlineCore(stored: Json, surroundings: InlineServices): AgentCore | undefined
  /** The agent that a call describes, with what it takes over from its host. */
  makeCore(definition: Json, host: AgentCore, modelNamed: (name: string) => Model): AgentCore
}

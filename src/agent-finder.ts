import type { AgentCore } from './agent/agent.ts'
import type { Maker } from './agent/node-run.ts'
import type { AgentRegistry } from './agent/registry.ts'
import { DefinitionError } from './base/error.ts'
import type { Json } from './base/json.ts'
import type { Conversation, Id } from './graph/rows.ts'
import type { Model } from './model/model.ts'
import type { Models } from './models.ts'
import { readInline } from './recipe/run/inline-agent.ts'
import { coreOf, inlineCore } from './recipe/run/inline-core.ts'
import type { Store } from './store/store.ts'

const MOST_KEPT = 512

interface Made {
  readonly hash: string
  /** Of the registry, when it was made: what it takes over may be another's code by now. */
  readonly version: number
  readonly core: AgentCore
}

/** Finds the agent of any run: one this process has code for, or one that is made again from its conversation's row. */
export class AgentFinder implements Maker {
  readonly models: Models
  private readonly registry: AgentRegistry
  private readonly store: Store
  private readonly made: Map<Id, Made> = new Map()

  constructor(registry: AgentRegistry, store: Store, models: Models) {
    this.registry = registry
    this.store = store
    this.models = models
  }

  of(runId: Id, conversation: Conversation): AgentCore | undefined {
    if (conversation.agent.inline === undefined) return this.registry.of(runId, conversation)
    return this.registry.homeOf(runId) ?? this.again(conversation)
  }

  make(definition: Json, host: AgentCore): AgentCore {
    return coreOf(readInline(definition), host, (name) => this.modelNamed(name))
  }

  modelNamed(name: string): Model {
    const model = this.models.named(name)
    if (model === undefined) throw new DefinitionError('definition', 'A file or a call names a model by an empty text.')
    return model
  }

  hasModelNamed(name: string): boolean {
    return this.models.has(name)
  }

  forget(): void {
    this.made.clear()
  }

  private again(conversation: Conversation): AgentCore | undefined {
    const { id, agent } = conversation
    const { version } = this.registry
    const known = this.made.get(id)
    if (known !== undefined && known.hash === agent.hash && known.version === version) return known.core
    const host = () => this.hostOf(conversation)
    const core = inlineCore(agent.inline ?? null, { host, modelNamed: (name) => this.modelNamed(name) })
    if (core === undefined) return undefined
    if (this.made.size >= MOST_KEPT) this.made.clear()
    this.made.set(id, { hash: agent.hash, version, core })
    return core
  }

  private hostOf({ parentTurnId, parentConversationId }: Conversation): AgentCore | undefined {
    const host = this.store.conversation(parentConversationId ?? '')
    return host === undefined || parentTurnId === null ? undefined : this.of(parentTurnId, host)
  }
}

import type { AgentCore } from './agent/definition.ts'
import type { AgentRegistry } from './agent/registry.ts'
import { runStep } from './agent/step.ts'
import { messageOf } from './base/error.ts'
import type { BlockWriter } from './conversation/blocks.ts'
import type { Feeds } from './conversation/feeds.ts'
import type { TurnEnds } from './conversation/turn-ends.ts'
import { type KindDefinition, runKind } from './delegation/kind.ts'
import { subagentEntries } from './delegation/subagent.ts'
import { runTask, type TaskRun } from './delegation/task.ts'
import type { Work } from './engine/engine.ts'
import type { Budget } from './grant/budget.ts'
import { type Layer, useLayer } from './grant/grant.ts'
import { planResult } from './graph/result.ts'
import type { Conversation, Id, Node, Turn } from './graph/rows.ts'
import type { Model } from './model/model.ts'
import type { Ledger } from './store/ledger.ts'
import { READ_RESULT, readResultTool } from './tool/read-result.ts'
import type { Logger } from './tool/tool.ts'
import { type ToolEntry, Toolkit, toolEntry } from './tool/toolkit.ts'

export interface ExecutorParts {
  readonly ledger: Ledger
  readonly feeds: Feeds
  readonly ends: TurnEnds
  readonly blocks: BlockWriter
  readonly registry: AgentRegistry
  readonly kinds: ReadonlyMap<string, KindDefinition>
  readonly logger: Logger
  readonly model: Model | null
  readonly budget: Budget | undefined
  readonly runtimeLayer: readonly Layer[]
  readonly runtime: object
}

/** Joins each kind of node with what runs it: the agent, its toolkit, its model and what binds it, found from the rows. */
export class Executors {
  private readonly parts: ExecutorParts
  private readonly toolkits: WeakMap<AgentCore, Toolkit> = new WeakMap()

  constructor(parts: ExecutorParts) {
    this.parts = parts
  }

  /** Runs one claimed node to its end and commits it. */
  async execute(claimed: Node, work: Work): Promise<void> {
    const { store } = this.parts.ledger
    const node = store.node(claimed.id)
    const turn = store.turn(claimed.turnId)
    const conversation = store.conversation(claimed.conversationId)
    if (node === undefined || turn === undefined || conversation === undefined) return
    try {
      await this.executeAs(await this.agentOf(conversation), { node, turn, conversation, work })
    } catch (error) {
      await this.failed(node, work, error)
    }
  }

  /** Makes an agent and those it may delegate to known to this process. */
  register(agent: AgentCore): void {
    if (!this.parts.registry.add(agent)) return
    for (const entry of subagentEntries(agent)) this.register(entry.agent)
  }

  private async executeAs(agent: AgentCore, place: Place): Promise<void> {
    const { node, turn, conversation, work } = place
    const { ledger, feeds, blocks } = this.parts
    const toolkit = this.toolkitOf(agent)
    const layers = [...this.parts.runtimeLayer, ...ceilingOf(conversation), useLayer(agent.name, agent.grant)]
    if (node.kind === 'agent_message') {
      const model = this.modelOf(agent, conversation)
      if (model === null)
        throw new Error(`${agent.name} has no model: name one in agent(), or in createRuntime({ model })`)
      blocks.wake()
      return runStep({ node, turn, conversation, agent, model, toolkit, layers, work, ledger, feeds })
    }
    const run = this.taskRun({ agent, toolkit, layers, ...place })
    const kind = this.parts.kinds.get(node.kind)
    return kind === undefined ? runTask(run) : runKind(run, kind)
  }

  private taskRun({ node, ...rest }: Place & Pick<TaskRun, 'agent' | 'toolkit' | 'layers'>): TaskRun {
    const { ledger, feeds, logger, budget, runtime, ends, registry } = this.parts
    return {
      ...rest,
      task: node,
      budget,
      ledger,
      feeds,
      logger,
      runtime,
      hasModel: (child) => child.model !== null || this.modelOf(rest.agent, rest.conversation) !== null,
      settleChild: (conversationId, child) => {
        this.register(child)
        registry.settle(conversationId, child)
      },
      waitFor: (runId) => ends.wait(runId),
    }
  }

  /** A changed definition goes on with the live code, inside the frozen ceiling, and says so once. */
  private async agentOf(conversation: Conversation): Promise<AgentCore> {
    const agent = this.parts.registry.of(conversation)
    if (agent === undefined) throw new Error(`this process has no code for the agent "${conversation.agent.name}"`)
    const { hash } = agent
    if (hash !== conversation.agent.hash) await this.noteChange(conversation.id, agent)
    return agent
  }

  private async noteChange(conversationId: Id, { name, hash }: AgentCore): Promise<void> {
    const { ledger } = this.parts
    const rootId = ledger.store.conversation(conversationId)?.rootId ?? conversationId
    await ledger.commit({
      kind: 'note',
      rootId,
      plan: (draft) => {
        const row = draft.conversation(conversationId)
        if (row.agent.hash === hash || row.activeTurnId === null) return
        const turn = draft.turn(row.activeTurnId)
        draft.event(turn, null, { type: 'definition-changed', agent: name, from: row.agent.hash, to: hash })
        draft.changeConversation(row, { agent: { name, hash } })
      },
    })
  }

  private toolkitOf(agent: AgentCore): Toolkit {
    const known = this.toolkits.get(agent)
    if (known !== undefined) return known
    const entries = new Map<string, ToolEntry>()
    for (const [name, tool] of agent.tools) entries.set(name, toolEntry(name, tool))
    for (const entry of subagentEntries(agent)) entries.set(entry.name, entry)
    if (!entries.has(READ_RESULT)) {
      entries.set(READ_RESULT, toolEntry(READ_RESULT, readResultTool(this.parts.ledger.store)))
    }
    const toolkit = new Toolkit(entries)
    this.toolkits.set(agent, toolkit)
    return toolkit
  }

  /** An agent's own model, else its host's, else the runtime's. */
  private modelOf(agent: AgentCore, conversation: Conversation): Model | null {
    if (agent.model !== null) return agent.model
    const { store } = this.parts.ledger
    const host =
      conversation.parentConversationId === null ? undefined : store.conversation(conversation.parentConversationId)
    const hostAgent = host === undefined ? undefined : this.parts.registry.of(host)
    if (host === undefined || hostAgent === undefined) return this.parts.model
    return this.modelOf(hostAgent, host)
  }

  /** A defect of a definition or of ours: the node ends with it, the run does not hang. */
  private async failed(node: Node, work: Work, error: unknown): Promise<void> {
    if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return
    this.parts.logger.error(messageOf(error), { nodeId: node.id, error })
    const failure = { code: 'internal', message: messageOf(error) }
    await this.parts.ledger.commit({
      kind: 'result',
      rootId: node.rootId,
      plan: (draft) => planResult(draft, work.claim, { state: 'errored', failure }),
    })
  }
}

interface Place {
  readonly node: Node
  readonly turn: Turn
  readonly conversation: Conversation
  readonly work: Work
}

function ceilingOf(conversation: Conversation): readonly Layer[] {
  return conversation.ceiling as unknown as readonly Layer[]
}

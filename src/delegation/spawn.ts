import type { AgentCore, AnyAgent } from '../agent/definition.ts'
import { messageOf } from '../base/error.ts'
import { type Json, toJson } from '../base/json.ts'
import { type CheckedSchema, describeIssues } from '../base/schema.ts'
import { type Budget, limitsOf } from '../grant/budget.ts'
import { decide } from '../grant/decide.ts'
import { delegateLayer, type Layer } from '../grant/grant.ts'
import type { Claim } from '../graph/claim.ts'
import { refusedOutcome } from '../graph/conclude.ts'
import type { OutcomeRecord } from '../graph/outcome.ts'
import type { Conversation, Id, Link, Node, Turn } from '../graph/rows.ts'
import { childIds, planSpawn, type SpawnRequest } from '../graph/spawn.ts'
import type { Ledger } from '../store/ledger.ts'
import { briefingText, snapshot } from './briefing.ts'

export interface SpawnOptions {
  readonly ledger: Ledger
  readonly claim: Claim
  readonly task: Node
  readonly turn: Turn
  readonly conversation: Conversation
  readonly host: AgentCore
  /** What binds the host itself; its own use layer is the last. */
  readonly layers: readonly Layer[]
  /** The runtime's budget, over every run. */
  readonly ceilingBudget: Budget | undefined
  readonly hasModel: (agent: AgentCore) => boolean
  /** Says which agent object runs the child in this process, before the child can start. */
  readonly settleChild: (conversationId: Id, agent: AgentCore) => void
  /** Throws when there is no agent to be had. */
  readonly take: () => AnyAgent
  readonly input: unknown
  readonly inputSchema: CheckedSchema | null
  readonly contract: Link['contract']
  readonly toolName: string
  readonly briefing: 'none' | 'snapshot'
  readonly budget: Budget | undefined
  readonly onParentClose: Link['onParentClose']
  readonly mode: Link['mode']
  readonly ordinal: number
}

export type SpawnResult =
  | { readonly link: Link }
  | { readonly refused: OutcomeRecord; readonly agentName: string }
  | { readonly lost: true }

/**
 * The one way a child is started (I8): the agent is taken, its use is decided, the input is checked, the briefing made,
 * and one commit writes the child. What cannot be done makes no child and costs no model call.
 */
export async function spawn(options: SpawnOptions): Promise<SpawnResult> {
  const taken = takeAgent(options)
  if (!taken.ok) return { refused: refusedOutcome('unavailable', taken.error), agentName: options.toolName }
  const { agent } = taken
  const no = (status: 'invalid_input' | 'unavailable' | 'denied', message: string) => ({
    refused: refusedOutcome(status, message),
    agentName: agent.name,
  })
  const decision = decide(options.layers, 'agent', agent.name)
  const approved = options.task.metadata['approvedBy'] !== undefined
  if (decision.verdict === 'deny' || (decision.verdict === 'ask' && !approved)) return no('denied', decision.reason)
  if (!options.hasModel(agent)) return no('unavailable', `Neither ${agent.name} nor its host has a model.`)
  const input = await readInput(options, agent)
  if (!input.ok) return no('invalid_input', input.error)
  const request = requestOf(options, agent, input.value)
  options.settleChild(request.sessionId ?? childIds(options.task.id, options.ordinal).conversation, agent)
  const spawned = await options.ledger.commit({
    kind: 'spawn',
    rootId: options.task.rootId,
    plan: (draft) => planSpawn(draft, request),
  })
  if ('refused' in spawned) return no('unavailable', `${spawned.reason}.`)
  return spawned
}

function takeAgent(options: SpawnOptions): { ok: true; agent: AnyAgent } | { ok: false; error: string } {
  try {
    return { ok: true, agent: options.take() }
  } catch (error) {
    return { ok: false, error: messageOf(error) }
  }
}

type ReadInput = { ok: true; value: Json } | { ok: false; error: string }

/** The input as the child gets it: checked, with defaults filled in, as JSON. */
async function readInput({ input, inputSchema, contract }: SpawnOptions, agent: AgentCore): Promise<ReadInput> {
  if (contract === 'message') return readMessage(input)
  const schema = inputSchema ?? agent.input
  if (schema === null) {
    return typeof input === 'string' ? { ok: true, value: input } : { ok: false, error: `${agent.name} takes a text.` }
  }
  const checked = await schema.validate(input)
  if (!checked.ok) return { ok: false, error: describeIssues(checked.issues) }
  const parsed = toJson(checked.value)
  const json = parsed.ok ? parsed : toJson(input)
  return json.ok ? { ok: true, value: json.value } : { ok: false, error: json.error }
}

function readMessage(input: unknown): ReadInput {
  const { message, session_id: session } = (input ?? {}) as Record<string, unknown>
  if (typeof message !== 'string' || message.trim() === '') return { ok: false, error: 'Message is required' }
  if (session !== undefined && session !== null && typeof session !== 'string') {
    return { ok: false, error: 'session_id must be a string' }
  }
  return { ok: true, value: session ? { message, session_id: session } : { message } }
}

function requestOf(options: SpawnOptions, agent: AgentCore, input: Json): SpawnRequest {
  const { task, host, conversation, ledger, contract } = options
  const context = options.briefing === 'none' ? null : snapshot(ledger.store, task, input)
  const asked = contract === 'message' ? (input as { message: string; session_id?: string }) : null
  return {
    claim: options.claim,
    ordinal: options.ordinal,
    mode: options.mode,
    contract,
    agent: { name: agent.name, hash: agent.hash },
    hostName: host.name,
    toolName: options.toolName,
    input,
    content: asked?.message ?? (typeof input === 'string' ? input : JSON.stringify(input)),
    briefing: context === null ? null : briefingText(host.name, context),
    delegationContext: context ?? { input_payload: input },
    ceiling: [...conversation.ceiling, delegateLayer(host.name, host.grant) as unknown as Json],
    limits: limitsOf([agent.budget, options.budget, options.ceilingBudget], options.turn.limits.depth),
    onParentClose: options.onParentClose,
    sessionId: asked?.session_id ?? null,
  }
}

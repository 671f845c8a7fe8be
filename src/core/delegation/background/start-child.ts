import { storedAgentOf } from '../../agent/build/conversation-settings.ts'
import type { AgentCore, AnyAgent } from '../../agent/definition/agent.ts'
import type { NodeRun } from '../../agent/hooks/node-run.ts'
import type { Json } from '../../base/json.ts'
import { Draft } from '../../graph/draft.ts'
import { originOf } from '../../graph/outcome.ts'
import type { Conversation, Id } from '../../graph/rows.ts'
import { planHostReply } from '../../rules/delegation/child-tools.ts'
import { jsonOutput } from '../../rules/delegation/join.ts'
import { resolveSession } from '../../rules/delegation/session.ts'
import { childIds } from '../../rules/delegation/spawn.ts'
import { errorEnd } from '../../tool/result.ts'
import { type BackgroundDelegation, type Offer, type SpawnResult, spawn } from '../spawn.ts'
import type { BackgroundSpec } from './options.ts'
import { agentKeyOf, type FieldReader, inheritedTurns, isSubagentKey, normalName } from './read.ts'
import type { RowToolEnd } from './row-tool.ts'

/** Starts a child. The same commit ends the task with the child's ids, or leaves it waiting if the mode is `run`. */
export async function startChild(
  run: NodeRun,
  read: FieldReader,
  { spec, tool, waits }: { spec: BackgroundSpec; tool: string; waits: boolean },
): Promise<RowToolEnd> {
  refuseNested(run, read, spec)
  const name = read.text('name')
  const prompt = read.text('prompt')
  const asked = read.profile(spec.profiles.filter((profile) => Object.hasOwn(run.home.settings.profiles, profile)))
  const turns = read.integer('context_turns', { least: 1, most: 1_000 })
  const title = read.optionalText('title')
  const timeoutMs = waits ? read.integer('timeout_ms', TIMEOUT) : null
  const agent = agentFor(run, read, { spec, name })
  const { conversation, node } = run
  const profile = asked ?? spec.profile ?? run.profile ?? 'full'
  const key = agentKeyOf(name)
  const ids = childIds(node.id, 0)
  const said = {
    ok: true,
    child_conversation_id: ids.conversation,
    child_graph_id: ids.conversation,
    agent_key: key,
    policy_profile: profile,
    status: 'spawned',
  }
  const background: BackgroundDelegation = {
    wake: spec.wake,
    briefing: briefingOf(run.agent.name),
    sessionId: null,
    title: title ?? key,
    metadata: {
      agent: {
        key,
        policy_profile: profile,
        context_turns: turns ?? inheritedTurns(spec.contextTurns, storedAgentOf(conversation)?.context_turns),
      },
      subagent: originOf(name, conversation.id, node.id),
    },
    result: waits ? null : { ...jsonOutput(said), metadata: { subagent: said } },
    wait: waits ? { timeoutMs } : null,
  }
  const offer = offerOf(agent, tool, profile, spec)
  return endOf(await spawn(run, { offer, input: prompt, mode: 'background', ids, background }), tool)
}

const TIMEOUT = { least: 1, most: 86_400_000 }

/** Sends a text to a child: the answer to its open question, or else one more turn of its conversation. */
export async function sendToChild(
  run: NodeRun,
  read: FieldReader,
  { spec, tool }: { spec: BackgroundSpec; tool: string },
): Promise<RowToolEnd> {
  const childId = read.text('child_conversation_id')
  const text = read.text('message')
  const { home, node, work } = run
  const replied = await home.ledger.commit({
    kind: 'answer',
    rootId: node.rootId,
    plan: (draft) => planHostReply(draft, work.claim, { childId, text, by: run.agent.name }),
  })
  if (replied === 'done') return 'done'
  const child = childOf(run, childId)
  if (child === undefined) return notFound(read)
  const agent = home.agents.of(run.tree, child.id, child)
  if (agent === undefined) return errorEnd(`This process has no code for the agent "${child.agent.name}".`)
  const said = { ok: true, child_conversation_id: child.id, child_graph_id: child.id, status: 'sent' }
  const background: BackgroundDelegation = {
    wake: spec.wake,
    briefing: null,
    sessionId: child.id,
    title: null,
    metadata: null,
    result: jsonOutput(said),
    wait: null,
  }
  const offer = offerOf(agent, tool, undefined, spec)
  const ids = childIds(node.id, 0)
  return endOf(await spawn(run, { offer, input: text, mode: 'background', ids, background }), tool)
}

/**
 * Finds a child of this turn. In a forked lane, a child from before the fork counts too; it is forked when it gets a
 * message.
 */
function childOf({ tree, home: { ledger }, turn }: NodeRun, childId: Id): Conversation | undefined {
  return resolveSession(new Draft(tree, ledger.clock.now()), turn, childId)?.session
}

/** Refuses an unknown id. A foreign id gets the same answer as one that does not exist (I9). */
export function notFound(read: FieldReader): never {
  return read.refuse('child_conversation_not_found', 'there is no subagent with this child_conversation_id here')
}

function briefingOf(hostName: string): string {
  return `You are a subagent in an independent conversation, started by ${JSON.stringify(hostName)} to do one task: the next message. Your last answer is all it gets from you.`
}

/** Refuses a child's attempt to start children (known by depth or by its key) unless its host allows `nested`. */
function refuseNested({ conversation }: NodeRun, read: FieldReader, { nested }: BackgroundSpec): void {
  if (nested) return
  const { key } = storedAgentOf(conversation) ?? {}
  if (conversation.depth === 0 && !isSubagentKey(key)) return
  const agent_key = isSubagentKey(key) ? key : 'subagent'
  read.refuse('nested_spawn_not_allowed', 'nested subagent_spawn is not allowed', { agent_key })
}

function agentFor(
  { agent: host }: NodeRun,
  read: FieldReader,
  { spec, name }: { spec: BackgroundSpec; name: string },
): AgentCore {
  const chosen = spec.agents.get(normalName(name)) ?? spec.agent
  if (chosen !== undefined) return chosen
  if (spec.agents.size === 0 && host.input === null) return host
  const names = [...spec.agents.keys()]
  return read.refuse('unknown_agent', `name must be one of ${names.join(', ')}`, { name })
}

function offerOf(core: AgentCore, name: string, profile: string | undefined, spec: BackgroundSpec): Offer {
  const agent = core as AnyAgent
  return {
    name,
    contract: 'background',
    input: null,
    briefing: { mode: 'none', tokens: 0 },
    grant: undefined,
    budget: spec.budget,
    profile,
    isShared: false,
    onParentClose: spec.onParentClose,
    agent,
    take: () => agent,
  }
}

/** Turns a failed start into a result for the host's model. */
function endOf(spawned: SpawnResult, tool: string): RowToolEnd {
  if ('ask' in spawned) return { ask: spawned.ask }
  if (!('refused' in spawned)) return 'done'
  const { status, error } = spawned.refused
  const refused: Json = { status, message: error?.message ?? '' }
  const end = errorEnd(`Tool '${tool}' failed: ${error?.message ?? status}`)
  return { ...end, output: { ...end.output, metadata: { refused } } }
}

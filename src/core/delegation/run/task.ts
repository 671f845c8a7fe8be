// Runs one task node: a call of a model. It starts a child and leaves the task waiting, or runs a tool and commits the
// result. `readyChildren` is the short cut: the commit of the answer starts the children that need nothing else.
//
// Called by: `runtime/execute-node` for task nodes, and `agent/step` while it commits an answer.
//
// Must stay true:
// - A waiting task is a row and holds no worker.
// - A call that is refused, denied or fails is a result that the model reads; the run continues.
// - Code of the application that makes an agent or a briefing runs once per delegation, and only here.

import { hasLiveSources } from '../../agent/build/read-kit.ts'
import type { HooksAbove, NodeRun, ReadyChild } from '../../agent/hooks/node-run.ts'
import { after } from '../../base/maybe.ts'
import type { ToolCall } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { eagerField, isEager } from '../../graph/kinds.ts'
import { withWords } from '../../graph/outcome.ts'
import type { Id } from '../../graph/rows.ts'
import { isRepeating, MAX_REPEATS, REPEATED, wouldRepeat } from '../../graph/tasks.ts'
import { fold } from '../../rules/delegation/fold.ts'
import { childIds } from '../../rules/delegation/spawn.ts'
import type { ApprovalRequest } from '../../rules/turn/approval-of.ts'
import { planAsk } from '../../rules/turn/approve.ts'
import type { Expansion } from '../../rules/turn/expand.ts'
import { planResult } from '../../rules/turn/result.ts'
import { MissingRows } from '../../store/look.ts'
import { inactiveText } from '../../tool/groups.ts'
import { invoke, type PendingPermission } from '../../tool/invoke.ts'
import { withArgumentsOf } from '../../tool/permit.ts'
import { errorEnd, type ToolEnd } from '../../tool/result.ts'
import type { ToolEntry } from '../../tool/toolkit.ts'
import { operationOf, type RowOperation, type RowToolEnd, refusedEnd } from '../background/row-tool.ts'
import { CalledChildren } from '../called-children.ts'
import { eagerOffers } from '../eager-offers.ts'
import { type Offer, refuse, type SpawnResult, spawn, spawnWith } from '../spawn.ts'
import { isSubagentEntry, type SubagentEntry, withPresets } from '../subagent.ts'

/** Runs one task: starts a child and leaves the task waiting as a row, or runs the tool and commits its result. */
export function runTask(run: NodeRun): void | Promise<void> {
  const { call } = run.node.input
  if (isEager(run.node)) return runItem(run)
  const above = run.home.agents.hooksAbove(run)
  const isPlain = run.hooks?.has('beforeTool') !== true && above === null && run.agent.guards === null
  if (isPlain || call === undefined || call.invalid !== undefined) return runCall(run)
  return runHooked(run, call, above)
}

/** Loaded only for agents that have tool hooks. */
const toolHooks = () => import('../../agent/hooks/tool-hooks.ts')

/** Runs a call through hooks: the agent's own first, then those it inherits from its hosts. */
async function runHooked(run: NodeRun, call: ToolCall, above: HooksAbove | null): Promise<void> {
  const { guardCall, showCall } = await toolHooks()
  const hooked = await guardCall(run, call, above)
  if ('ask' in hooked) return commitAsk(run, hooked.ask)
  if ('state' in hooked) return commitEnd(run, hooked)
  showCall(run, hooked, above?.watching ?? [])
  if (hooked === call) return runCall(run)
  return runCall({ ...run, node: { ...run.node, input: { ...run.node.input, call: hooked } } })
}

function runCall(run: NodeRun): void | Promise<void> {
  const entry = run.toolkit.find(run.node.input.call?.name ?? '')
  if (entry !== undefined && !run.toolkit.isOn(entry, run.conversation.groups)) {
    return commitEnd(run, errorEnd(inactiveText(entry.name, entry.memberOf)))
  }
  if (isStuck(run, entry)) return commitEnd(run, refusedRepeat())
  if (entry?.tool === null && isSubagentEntry(entry)) return delegateTask(run, entry)
  return runTool(run, entry)
}

const STUCK = `Refused: the last ${MAX_REPEATS} times these calls gave the same results. Calling again would too. Do something else, or answer with what you have.`

function refusedRepeat(): ToolEnd {
  return { state: 'finished', output: { content: STUCK, isError: true, metadata: REPEATED }, body: null }
}

/** Detects a model that repeats the same call. Tools that poll are exempt: they are meant to be called again. */
function isStuck({ tree, turn, node }: NodeRun, entry: ToolEntry | undefined): boolean {
  if (turn.account.modelCalls <= MAX_REPEATS || entry?.tool?.polls === true) return false
  return isRepeating(tree, node)
}

async function runTool(run: NodeRun, entry: ToolEntry | undefined): Promise<void> {
  const operation = operationOf(entry)
  if (entry !== undefined && operation !== undefined) {
    return finish(run, await runRowTool(run, entry, operation))
  }
  const children = new CalledChildren(run)
  if (run.node.epoch > 1) await children.lookBack()
  const end = await invoke(run, entry, children)
  children.end()
  return finish(run, end)
}

async function finish(run: NodeRun, end: ToolEnd | PendingPermission | undefined): Promise<void> {
  if (end === undefined) return
  if ('ask' in end) return commitAsk(run, end.ask)
  const isPlain = run.hooks === null && run.agent.guards === null
  await commitEnd(run, isPlain ? end : await (await toolHooks()).applyAfterTool(run, end))
}

function delegateTask(run: NodeRun, entry: SubagentEntry): void | Promise<void> {
  const call = run.node.input.call
  if (call?.invalid !== undefined) {
    return fallBack(
      run,
      entry,
      refuse('invalid_input', entry.agent.name, { error: `The arguments are not JSON: ${call.invalid}` }),
    )
  }
  const ids = childIds(run.node.id, 0)
  const input = withPresets(call?.input, entry.presets)
  const spawned = spawn(run, { offer: entry, input, mode: 'parked', ids })
  return after(spawned, (result) =>
    'ask' in result ? commitAsk(run, withArgumentsOf(result.ask, entry.schema)) : fallBack(run, entry, result),
  )
}

/** Runs the item of a plan after a person has allowed its child. */
async function runItem(run: NodeRun): Promise<void> {
  const { call } = run.node.input
  const own = eagerOffers(run.agent).find(({ path }) => path === call?.name)
  if (own === undefined || call === undefined)
    return commitEnd(run, errorEnd(`${call?.name} starts no agent any more.`))
  await own.source.prepare()
  const offer = own.offer()
  const { inputOf } = await import('./eager.ts')
  const input = await inputOf(own, offer, { item: call.input, field: eagerField(run.node) })
  if ('failed' in input) return fallBack(run, offer, refuse('invalid_input', offer.agent.name, { error: input.failed }))
  const spawned = await spawn(run, { offer, input: input.value, mode: 'parked', ids: childIds(run.node.id, 0) })
  return 'ask' in spawned ? commitAsk(run, spawned.ask) : fallBack(run, offer, spawned)
}

/** Turns a refused delegation into a result for the host's model. */
function fallBack(run: NodeRun, { contract }: Pick<Offer, 'contract'>, spawned: SpawnResult): void | Promise<void> {
  if (!('refused' in spawned)) return
  const facts = {
    contract,
    agentName: spawned.agentName,
    hostName: run.agent.name,
    delegationContext: { input_payload: run.node.input.call?.input ?? null },
    childConversationId: '',
  }
  const { content, metadata } = fold(facts, withWords(spawned.refused, {}), spawned)
  return commitEnd(run, { state: 'finished', output: { content, isError: true, metadata }, body: null })
}

/** Leaves the task waiting for a person; it holds no worker. */
function commitAsk({ node, work, home }: NodeRun, ask: ApprovalRequest): void | Promise<void> {
  return home.ledger.commit({ kind: 'ask', rootId: node.rootId, plan: (draft) => planAsk(draft, work.claim, ask) })
}

function commitEnd({ node, work, home }: NodeRun, end: ToolEnd): void | Promise<void> {
  const plan = (draft: Draft) => {
    if (end.body !== null) draft.addBody(end.body)
    planResult(draft, work.claim, end)
  }
  return home.ledger.commit({ kind: 'result', rootId: node.rootId, plan })
}

/** Above this number of calls each task starts its own child, so that other work gets its turn in between. */
const MOST_CALLS = 16

/**
 * Prepares the children that the commit of an answer can start itself: their calls are already checked and allowed, and
 * nobody has to be asked. This saves a commit per delegation.
 */
export function readyChildren(before: NodeRun, expansion: Expansion): readonly ReadyChild[] {
  try {
    return childrenAtOnce(before, expansion)
  } catch (error) {
    // Rows have to be loaded: each task starts its own child.
    if (!(error instanceof MissingRows)) throw error
    return NONE
  }
}

function childrenAtOnce(before: NodeRun, { answer, tasks, ids }: Expansion): readonly ReadyChild[] {
  if (tasks.length > MOST_CALLS || !stillHolds(before)) return NONE
  const { home, tree } = before
  if (before.hooks?.has('beforeTool') === true || before.agent.guards !== null) return NONE
  if (home.agents.hooksAbove(before) !== null) return NONE
  const node = tree.node(before.node.id)
  const turn = tree.turn(before.turn.id)
  if (node === undefined || turn === undefined) return NONE
  if (turn.account.modelCalls >= MAX_REPEATS && wouldRepeat(tree, node, answer.calls)) return NONE
  const output = { content: answer.content, calls: answer.calls }
  const said = { ...node, output, state: 'finished', endedAt: home.ledger.clock.now() } as const
  const run: NodeRun = { ...before, node, turn, said }
  const children: ReadyChild[] = []
  for (const [at, task] of tasks.entries()) {
    if (!task.delegates) continue
    const child = readyChild(run, task.call, ids[at] ?? '')
    // Children after a missing one must not take its place, so the list ends here.
    if (child === null) return children
    children.push(child)
  }
  return children
}

const NONE: readonly ReadyChild[] = []

/**
 * The answer has taken its time: does all that decides still say what it said when the run was resolved? Where it does
 * not, or is not in the rows, each task decides by what holds when it runs.
 */
function stillHolds(run: NodeRun): boolean {
  const { agent, conversation, home } = run
  if (home.live.tape !== null || (agent.sources.size > 0 && hasLiveSources(agent))) return false
  return agent.identity.ref.hash === conversation.agent.hash && home.agents.isCurrent(run)
}

function readyChild(run: NodeRun, call: ToolCall, taskId: Id): ReadyChild | null {
  const entry = call.invalid === undefined ? run.toolkit.find(call.name) : undefined
  if (entry?.tool !== null || !run.toolkit.isOn(entry, run.conversation.groups) || !isSubagentEntry(entry)) return null
  const input = withPresets(call.input, entry.presets)
  if (runsUserCode(entry) || dependsOnRows(entry, input)) return null
  try {
    return spawnWith(run, { offer: entry, input, mode: 'parked', ids: childIds(taskId, 0) }, taskId)
  } catch {
    // The task reports what is wrong with the agent.
    return null
  }
}

/**
 * Tells whether application code makes the agent or its briefing. The task runs such code, exactly once per delegation.
 */
function runsUserCode({ isProvided, briefing }: SubagentEntry): boolean {
  return isProvided || typeof briefing.mode === 'function'
}

/**
 * Tells whether stored rows decide which conversation the child continues, or how many may run: then one starts at a
 * time.
 */
function dependsOnRows({ contract, isShared, session }: SubagentEntry, input: unknown): boolean {
  if (isShared || session?.max != null) return true
  return contract === 'message' && typeof input === 'object' && input !== null && 'session_id' in input
}

/**
 * Runs a row tool with the checks every tool gets; undefined if its own commit has ended the node or left it waiting.
 */
async function runRowTool(
  run: NodeRun,
  entry: ToolEntry,
  operation: RowOperation,
): Promise<ToolEnd | PendingPermission | undefined> {
  let did: RowToolEnd | undefined
  const execute = async (input: unknown) => {
    did = await operation(run, input as { readonly [key: string]: unknown })
    return null
  }
  const bound = entry.tool === null ? null : { ...entry.tool, execute }
  const children = new CalledChildren(run)
  const end = await invoke(run, { ...entry, schema: entry.schema, tool: bound, isOwn: true }, children)
  children.end()
  if (did === undefined) return end
  if (did === 'done') return undefined
  if ('ask' in did) return { verdict: 'ask', ask: did.ask }
  return 'code' in did ? refusedEnd(entry.name, did) : did
}

// The reducer: from the events of a tree to its state.
//
// Owns:      what each event changes in the state of a tree.
// Called by: `follow` of the client, the live tree of the command line, pages and programs that show a tree.
// Must stay true:
//   - It is pure, and costs the same however large the tree is. Parts that did not change are the same objects.
//   - After the last event of each commit, `treeOf` gives what `runtime.tree` gives.
//   - A stored event that comes a second time changes nothing.
//   - What usually follows from an event (see `usualAfter`) is assumed, unless the event says otherwise.

import type { DurableEvent, LiveEvent, RunEvent } from '../../../core/graph/event.ts'
import { nextId, type ToldLane, type ToldNode, usualAfter } from '../../../core/graph/kinds.ts'
import type { Id } from '../../../core/graph/rows.ts'
import type { ConversationState, RunState, TreeAsked, TreeNode, TreeState, TreeWord } from './tree-state.ts'
import { inOrder, type List } from './trie.ts'
import { NONE_USED, sumOf, wordsOf } from './values.ts'

/** The state of a tree after one more event. Give it the events in order, from the first; live ones may be left out. */
export function reduceTree(state: TreeState, event: RunEvent): TreeState {
  if (event.type === 'live') return withLive(state, event)
  if (!isStored(event)) return withDelta(state, event)
  if (event.seq <= state.seq) return state
  const draft = new Change({ ...state, seq: event.seq })
  draft.take(event)
  return draft.state
}

function isStored(event: RunEvent): event is DurableEvent {
  return Number.isInteger(event.seq)
}

/** The change of a state by one stored event. */
class Change {
  state: TreeState

  constructor(state: TreeState) {
    this.state = state
  }

  take(event: DurableEvent): void {
    if (!this.state.conversations.has(event.conversationId)) this.addConversation(event)
    const run = this.runOf(event)
    const reducer = REDUCERS[event.type] as ((change: Change, event: DurableEvent, run: RunState) => void) | undefined
    reducer?.(this, event, run)
    const { told } = event
    if (told?.unusual !== true) this.assume(event, run)
    if (told === undefined) return
    for (const node of told.nodes ?? []) this.tell(event, node)
    if (told.cancelRequested === true) this.changeRun(event.runId, { cancelRequested: true })
    for (const lane of told.lanes ?? []) this.tellLane(event, lane)
  }

  /** Does what usually follows from an event. `run` is its run before the event. */
  private assume(event: DurableEvent, run: RunState): void {
    switch (usualAfter(event, run.callsLeft)) {
      case 'next-runs':
        if (run.state === 'running') this.openNext(event, RUNNING)
        break
      case 'next-waits': {
        const calls = this.state.runs.get(run.id)?.calls ?? null
        this.openNext(event, { state: 'waiting', waits: { on: 'nodes', refs: inOrder(calls), until: null } })
        break
      }
      case 'call-waits':
        this.waitForChild(event)
        break
      case 'last-runs':
        this.freeLast(event)
    }
  }

  private addConversation({ conversationId, path }: Pick<DurableEvent, 'conversationId' | 'path'>): void {
    this.putConversation({
      id: conversationId,
      agent: path.at(-1) ?? '',
      title: null,
      archivedAt: null,
      from: null,
      skips: [],
      runs: null,
      runCount: 0,
      lanes: null,
    })
  }

  putConversation(row: ConversationState): void {
    this.state = { ...this.state, conversations: this.state.conversations.with(row.id, row) }
  }

  /** The run of an event. Its first event makes it, as the newest of its conversation. */
  private runOf({ runId, conversationId, path, parentId }: DurableEvent): RunState {
    const known = this.state.runs.get(runId)
    if (known !== undefined) return known
    const run = newRun({ id: runId, conversationId, agent: path.at(-1) ?? '', hostId: parentId })
    this.state = { ...this.state, runs: this.state.runs.with(runId, run) }
    this.listRun(run)
    return run
  }

  private listRun({ id, conversationId }: RunState): void {
    const row = this.state.conversations.get(conversationId)
    if (row === undefined) return
    this.putConversation({ ...row, runs: { item: id, rest: row.runs }, runCount: row.runCount + 1 })
  }

  /** Replaces a run, and says so to all runs and conversations above it: they are other objects from then on. */
  changeRun(id: Id, patch: Partial<RunState>): void {
    let { runs } = this.state
    const run = runs.get(id)
    if (run === undefined) return
    let changed: RunState | undefined = { ...run, ...patch }
    while (changed !== undefined) {
      runs = runs.with(changed.id, changed)
      this.state = { ...this.state, runs }
      this.touchConversation(changed.conversationId)
      const above: RunState | undefined = changed.hostId === null ? undefined : runs.get(changed.hostId)
      changed = above === undefined ? undefined : { ...above }
    }
  }

  private touchConversation(id: Id): void {
    for (let row = this.state.conversations.get(id); row !== undefined; ) {
      this.putConversation({ ...row })
      row = row.from === null ? undefined : this.state.conversations.get(row.from.laneId)
    }
  }

  addChild(event: Extract<DurableEvent, { type: 'delegation-start' }>): void {
    const { childRunId: id, childConversationId: conversationId, agent, tool, runId: hostId } = event
    const host = this.state.runs.get(hostId)
    const known = this.state.runs.get(id)
    if (known === undefined) {
      if (!this.state.conversations.has(conversationId)) this.addConversation({ conversationId, path: [agent] })
      const run = newRun({ id, conversationId, agent, hostId })
      this.state = { ...this.state, runs: this.state.runs.with(id, { ...run, tool }) }
      this.listRun(run)
    } else this.changeRun(id, { tool, hostId })
    if (host !== undefined) this.changeRun(hostId, { children: { item: id, rest: host.children } })
    const task = this.node(event.nodeId ?? '')
    if (task === undefined) return
    const childIds = task.childIds.includes(id) ? task.childIds : [...task.childIds, id]
    this.putNode({ ...task, childIds })
  }

  /** The call waits for the child that it started last. */
  private waitForChild({ nodeId }: DurableEvent): void {
    const task = this.node(nodeId ?? '')
    if (task === undefined || !isOpen(task)) return
    this.putNode({ ...task, state: 'waiting', waits: { on: 'children', refs: task.childIds.slice(-1), until: null } })
  }

  /** Changes a node that is known. */
  patchNode(nodeId: Id | null, patch: (node: TreeNode) => Partial<TreeNode>): void {
    const node = this.node(nodeId ?? '')
    if (node !== undefined) this.putNode({ ...node, ...patch(node) })
  }

  ask(nodeId: Id | null, asked: TreeAsked): void {
    this.patchNode(nodeId, (node) => ({ asked: [...node.asked, asked] }))
  }

  /** Puts a person's word to what the node asked last. */
  hearWord(nodeId: Id | null, answer: TreeWord): void {
    this.patchNode(nodeId, ({ asked }) => ({
      asked: asked.map((one, at) => (at === asked.length - 1 && one.answer === null ? { ...one, answer } : one)),
    }))
  }

  /** The message of the agent that comes after a node. */
  private openNext(event: DurableEvent, doing: Pick<TreeNode, 'state' | 'waits'>): void {
    if (event.nodeId === null) return
    this.putNode({ ...newNode(event, nextId(event.nodeId)), what: 'agent_message', ...doing })
  }

  /** Runs the only open node of a run, where it waited for the others. */
  private freeLast({ runId, at: moment }: Pick<DurableEvent, 'runId' | 'at'>): void {
    const run = this.state.runs.get(runId)
    if (run?.openCount !== 1) return
    for (let at = run.open; at !== null; at = at.rest) {
      const node = this.node(at.item)
      if (node === undefined || !isOpen(node)) continue
      if (node.waits?.on === 'nodes') this.putNode({ ...node, ...RUNNING, startedAt: moment })
      return
    }
  }

  node(id: Id): TreeNode | undefined {
    return this.state.nodes.get(id)
  }

  /** Replaces a node. The run counts which of its nodes are open, and which run. */
  putNode(node: TreeNode): void {
    const before = this.node(node.nodeId)
    this.state = { ...this.state, nodes: this.state.nodes.with(node.nodeId, node) }
    this.forget(node)
    const run = this.state.runs.get(node.runId)
    if (run === undefined) return
    const opened = Number(isOpen(node)) - Number(before !== undefined && isOpen(before))
    const started = Number(node.state === 'running') - Number(before?.state === 'running')
    const isNew = before === undefined
    if (!isNew && opened === 0 && started === 0 && before.waits === node.waits) return
    const item = node.nodeId
    const isListed = opened > 0
    this.changeRun(run.id, {
      ...(isNew ? { nodes: { item, rest: run.nodes } } : {}),
      ...(isListed ? { open: { item, rest: run.open }, listed: run.listed + 1 } : {}),
      openCount: run.openCount + opened,
      running: run.running + started,
    })
    this.prune(run.id)
  }

  /** A request or question is over when its node goes on. */
  private forget({ nodeId, waits }: TreeNode): void {
    const { approvals, questions } = this.state
    if (waits?.on !== 'approval' && approvals.has(nodeId)) {
      this.state = { ...this.state, approvals: approvals.without(nodeId) }
    }
    if (waits?.on !== 'question' && questions.has(nodeId)) {
      this.state = { ...this.state, questions: questions.without(nodeId) }
    }
  }

  /** Drops ended nodes from the list of open ones when most of it has ended: on average one step per node. */
  private prune(id: Id): void {
    const run = this.state.runs.get(id)
    if (run === undefined || run.listed < 16 || run.listed < run.openCount * 2) return
    const ids = inOrder(run.open).filter((nodeId) => isOpen(this.node(nodeId)))
    const open = ids.reduce<List<Id> | null>((rest, item) => ({ item, rest }), null)
    this.state = { ...this.state, runs: this.state.runs.with(id, { ...run, open, listed: ids.length }) }
  }

  changeNode(event: DurableEvent, patch: Partial<TreeNode>): void {
    const { nodeId } = event
    if (nodeId !== null) this.putNode({ ...(this.node(nodeId) ?? newNode(event, nodeId)), ...patch })
  }

  private tell(event: DurableEvent, told: ToldNode): void {
    const { id, on } = told
    const node = this.node(id) ?? newNode(event, id)
    const what = told.what ?? node.what
    if (isState(on)) {
      const endedAt = on === 'running' ? null : event.at
      this.putNode({ ...node, what, state: on, waits: null, endedAt })
      return
    }
    const calls = this.state.runs.get(event.runId)?.calls ?? null
    const refs = told.refs ?? (on === 'nodes' ? inOrder(calls) : [])
    this.putNode({ ...node, what, state: 'waiting', waits: { on, refs, until: told.until ?? null }, endedAt: null })
  }

  private tellLane(event: DurableEvent, { id, past, from, ...facts }: ToldLane): void {
    const origin = from === undefined ? undefined : this.state.conversations.get(from.laneId)
    const known = this.state.conversations.get(id)
    if (known === undefined) this.addConversation({ conversationId: id, path: [origin?.agent ?? ''] })
    const row = this.state.conversations.get(id)
    if (row === undefined) return
    this.putConversation({ ...row, ...facts, from: from ?? row.from })
    if (origin !== undefined && from?.isListed === true) {
      this.putConversation({ ...origin, lanes: { item: id, rest: origin.lanes } })
    }
    if (past !== undefined) this.addPast(id, past)
    this.touchConversation(id)
    this.changeRun(event.runId, {})
  }

  private addPast(conversationId: Id, past: NonNullable<ToldLane['past']>): void {
    const row = this.state.conversations.get(conversationId)
    if (row === undefined) return
    let { runs } = this.state
    for (const { runId: id, startedAt, endedAt, outcome } of past) {
      const run = newRun({ id, conversationId, agent: row.agent, hostId: null })
      runs = runs.with(id, { ...run, state: 'ended', startedAt, endedAt, outcome })
    }
    this.state = { ...this.state, runs }
    const ids = [...past.map(({ runId }) => runId), ...inOrder(row.runs)]
    const list = ids.reduce<List<Id> | null>((rest, item) => ({ item, rest }), null)
    this.putConversation({ ...row, runs: list, runCount: ids.length })
  }
}

type Reducers = {
  readonly [Type in DurableEvent['type']]?: (
    change: Change,
    event: Extract<DurableEvent, { type: Type }>,
    run: RunState,
  ) => void
}

const REDUCERS: Reducers = {
  'run-start': (change, { runId, at }) => change.changeRun(runId, { state: 'running', startedAt: at }),
  'run-end': (change, { runId, at, outcome }) =>
    change.changeRun(runId, { state: 'ended', endedAt: at, outcome, open: null, listed: 0, openCount: 0, running: 0 }),
  usage: (change, { runId, nodeId, usage, model }, { own, usages }) => {
    change.changeRun(runId, { own: sumOf(own, usage), usages: { item: { model, usage }, rest: usages } })
    change.patchNode(nodeId, (node) => ({ model, usage: sumOf(node.usage ?? NONE_USED, usage) }))
  },
  'delegation-start': (change, event) => change.addChild(event),
  message: (change, event) => {
    const { role, content, calls, state, reasoning = '', at, told } = event
    const callsLeft = told?.unusual === true ? 0 : calls.length
    if (role === 'agent') change.changeRun(event.runId, { calls: null, callsLeft })
    const what = `${role}_message`
    const end = { state: endOf(state), waits: null, endedAt: at }
    change.changeNode(event, { what, role, content, calls, reasoning, text: wordsOf(content), writes: [], ...end })
  },
  'tool-call': (change, event, { calls, callsLeft }) => {
    if (event.nodeId === null) return
    const all = { item: event.nodeId, rest: calls }
    change.changeRun(event.runId, { calls: all, callsLeft: Math.max(0, callsLeft - 1) })
    change.changeNode(event, { what: event.call.name, call: event.call, state: 'running' })
  },
  'tool-result': (change, event) => {
    const { content, isError, state, at, tool: what } = event
    change.changeNode(event, { what, content, isError, state: endOf(state), waits: null, endedAt: at, progress: null })
  },
  'node-state': (change, event) => {
    const node = change.node(event.nodeId ?? '')
    // Its process is gone, or gave it back: the next one begins anew.
    if (event.to === 'pending' && node !== undefined) change.putNode({ ...node, ...SILENT })
    if (OPEN.has(event.to)) return
    const end = { state: endOf(event.to), waits: null, endedAt: event.at, writes: [] }
    change.changeNode(event, { what: event.kind, trouble: event.reason, ...end })
  },
  retry: (change, event, run) => {
    const node = event.nodeId === null ? undefined : change.node(event.nodeId)
    if (node === undefined || node.runId !== run.id || node.call !== null) return
    change.changeNode(event, { attempt: event.attempt, trouble: event.error, ...SILENT })
  },
  'approval-request': (change, event) => {
    const { nodeId, at: since, seq: _, type: __, told: ___, parentId: ____, ...asked } = event
    if (nodeId === null) return
    const { request, input, reason: text } = asked
    change.ask(nodeId, { request, input, text, since, answer: null })
    const { approvals } = change.state
    change.state = { ...change.state, approvals: approvals.with(nodeId, { ...asked, nodeId, since }) }
  },
  question: (change, event) => {
    const { nodeId, at: since, seq: _, type: __, told: ___, parentId: ____, ...asked } = event
    if (nodeId === null) return
    change.ask(nodeId, { request: null, input: null, text: asked.text, since, answer: null })
    const { questions } = change.state
    change.state = { ...change.state, questions: questions.with(nodeId, { ...asked, nodeId, since }) }
  },
  'approval-answer': (change, { nodeId, at, by, allowed, reason: text, always, edited }) => {
    change.hearWord(nodeId, { by, at, allowed, text, always, edited })
    change.state = { ...change.state, approvals: change.state.approvals.without(nodeId ?? '') }
  },
  answer: (change, { nodeId, at, by, text }) => {
    change.hearWord(nodeId, { by, at, text, allowed: null, always: false, edited: false })
    change.state = { ...change.state, questions: change.state.questions.without(nodeId ?? '') }
  },
  uncertain: (change, { nodeId, reason }) => change.patchNode(nodeId, () => ({ trouble: reason })),
  'call-settled': (change, { nodeId, at, by, how: text }) => {
    const answer = { by, at, text, allowed: null, always: false, edited: false }
    change.ask(nodeId, { request: null, input: null, text: 'What became of it?', since: at, answer })
  },
}

const RUNNING = { state: 'running', waits: null } as const

const SILENT = { text: '', reasoning: '', writes: [] } as const
const OPEN: ReadonlySet<string> = new Set(['pending', 'awaiting_approval', 'running', 'waiting'])

function endOf(state: string): TreeNode['state'] {
  return OPEN.has(state) ? 'waiting' : (state as TreeNode['state'])
}

const STATES: ReadonlySet<string> = new Set([
  ...['running', 'finished', 'errored', 'rejected', 'skipped', 'stopped', 'uncertain'],
])

function isState(on: ToldNode['on']): on is Exclude<TreeNode['state'], 'waiting'> {
  return STATES.has(on)
}

/** True for a node that runs or waits. */
export function isOpen(node: TreeNode | undefined): boolean {
  return node !== undefined && (node.state === 'running' || node.state === 'waiting')
}

function newRun({ id, conversationId, agent, hostId }: Pick<RunState, 'id' | 'conversationId' | 'agent' | 'hostId'>) {
  const run: RunState = {
    id,
    conversationId,
    agent,
    tool: null,
    hostId,
    state: 'queued',
    outcome: null,
    own: NONE_USED,
    usages: null,
    cancelRequested: false,
    startedAt: null,
    endedAt: null,
    children: null,
    nodes: null,
    open: null,
    listed: 0,
    openCount: 0,
    running: 0,
    calls: null,
    callsLeft: 0,
  }
  return run
}

function newNode({ runId, conversationId, at }: Pick<DurableEvent, 'runId' | 'conversationId' | 'at'>, nodeId: Id) {
  const node: TreeNode = {
    nodeId,
    runId,
    conversationId,
    what: '',
    state: 'finished',
    waits: null,
    attempt: 1,
    text: '',
    reasoning: '',
    writes: [],
    content: null,
    role: null,
    calls: [],
    call: null,
    isError: false,
    progress: null,
    childIds: [],
    usage: null,
    model: null,
    trouble: null,
    asked: [],
    startedAt: at,
    endedAt: null,
  }
  return node
}

/** A node that streams: what it said replaces all that is known of it. */
function withLive(state: TreeState, event: Extract<RunEvent, { type: 'live' }>): TreeState {
  const { nodeId, attempt, text, reasoning, calls: writes } = event
  if (nodeId === null) return state
  const node = state.nodes.get(nodeId)
  if (node === undefined || !isOpen(node)) return state
  return { ...state, nodes: state.nodes.with(nodeId, { ...node, attempt, text, reasoning, writes }) }
}

function withDelta(state: TreeState, event: LiveEvent): TreeState {
  const node = state.nodes.get(event.nodeId ?? '')
  if (node === undefined || !isOpen(node)) return state
  const heard = hear(node, event)
  return heard === node ? state : { ...state, nodes: state.nodes.with(node.nodeId, heard) }
}

function hear(node: TreeNode, event: LiveEvent): TreeNode {
  switch (event.type) {
    case 'text-delta':
      return { ...node, text: event.cumulative === true ? event.text : node.text + event.text }
    case 'reasoning-delta':
      return { ...node, reasoning: event.cumulative === true ? event.text : node.reasoning + event.text }
    case 'tool-input-delta':
      return { ...node, writes: written(node.writes, event) }
    case 'progress':
      return { ...node, progress: event.message }
    case 'reset':
      return { ...node, ...SILENT, attempt: event.attempt }
    default:
      return node
  }
}

function written(
  writes: TreeNode['writes'],
  { callId, tool, text, cumulative }: Extract<LiveEvent, { type: 'tool-input-delta' }>,
): TreeNode['writes'] {
  const at = writes.findLastIndex((call) => call.callId === callId)
  if (at < 0) return [...writes, { callId, tool, text }]
  return writes.map((call, index) =>
    index === at ? { ...call, text: cumulative === true ? text : call.text + text } : call,
  )
}

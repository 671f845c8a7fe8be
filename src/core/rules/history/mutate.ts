import { InputError, NotFoundError } from '../../base/error.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import {
  anything,
  flag,
  int,
  list,
  listOf,
  type OptionRule,
  type OptionRules,
  oneOf,
  readOptions,
  record,
  text,
} from '../../base/options.ts'
import { type Content, isStoredContent, textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { previewOf } from '../../graph/kinds.ts'
import { refused, requireOpen } from '../../graph/refused.ts'
import type { EdgeType, Effect, Id, Node, NodeInput, NodeOutput, Turn } from '../../graph/rows.ts'
import { pauseClocks } from '../turn/account.ts'
import { APPROVAL_MS } from '../turn/approve.ts'
import { endNode, findBlockingDenial } from '../turn/end-node.ts'
import { beginTurn, bindTurn, type TurnBounds, tellMessage } from '../turn/open-turn.ts'

/** A node for `mutate` to put in. All of it is JSON. */
export interface NodeSpec {
  /** A built-in kind (`user_message`, `agent_message`, `task`, ...), or one of `createRuntime({ kinds })`. */
  readonly kind: string
  /** Kinds that run: pending, awaiting_approval or finished. Others are always finished. Default: `pending` for kinds that run. */
  readonly state?: 'pending' | 'awaiting_approval' | 'finished'
  /** The message: input of a user's or developer's message, output of an agent's. Default: none. */
  readonly content?: Content
  /** The node's other input, such as `{ value }` for a kind of your own. Default: none. */
  readonly input?: NodeInput
  /** The result of a node that you put in as finished. Default: none. */
  readonly output?: NodeOutput
  /** Data of your own beside it, which no model sees. Default: none. */
  readonly metadata?: { readonly [key: string]: Json }
  /** Says whether it may run a second time after a crash. Default: `idempotent` for an agent_message, else `effectful`. */
  readonly effect?: Effect
  /** A repeated key with an equal request gives the node that it made before; with another request it is a conflict. Default: none. */
  readonly idempotencyKey?: string
}

const said: OptionRule = (value) => (isStoredContent(value) ? null : 'a text or a list of blocks')
const call: OptionRule = (value) => (isCall(value) ? null : '{ id, name, input }')

const SPEC: OptionRules<NodeSpec> = {
  kind: text,
  state: oneOf('pending', 'awaiting_approval', 'finished'),
  content: said,
  input: record,
  output: record,
  metadata: record,
  effect: oneOf('pure', 'idempotent', 'effectful'),
  idempotencyKey: text,
}

const INPUT: OptionRules<NodeInput> = {
  content: said,
  messages: list,
  nudge: text,
  call,
  delegates: flag,
  value: anything,
}

const OUTPUT: OptionRules<NodeOutput> = {
  content: said,
  calls: listOf(call, '{ id, name, input }'),
  reasoning: text,
  value: anything,
  bodyRef: text,
  bytes: int(0),
  isError: flag,
  metadata: record,
  subagent: record,
  extra: record,
  droppedCalls: int(0),
}

const nodeId: OptionRule = (value) => (typeof value === 'string' ? null : 'the id of a node (node.id)')
const EDGE = { from: nodeId, to: nodeId, type: oneOf('sequence', 'dependency', 'branch') }

export interface MutationScope extends TurnBounds {
  readonly conversationId: Id
  /** The layers of whoever puts the nodes in. */
  readonly ceiling: Turn['ceiling']
  /** Left out: a new turn. */
  readonly runId?: Id
}

/**
 * Adds nodes and edges to a conversation, all or none. Runnable ones start; a turn whose last node cannot be its last word
 * grows an answer.
 */
export function planMutate<T>(draft: Draft, scope: MutationScope, change: (mutation: Mutation) => T): T {
  const mutation = new Mutation(draft, turnOf(draft, scope))
  try {
    const result = change(mutation)
    requireValue(result)
    if (draft.turn(mutation.runId).nodeCount === 0) {
      throw new InputError('invalid_input', 'A new turn needs at least one node: nothing was put in.')
    }
    mutation.finish()
    return result
  } finally {
    mutation.close()
  }
}

/** Refuses a callback that goes on later: what it puts in then would be lost. */
function requireValue(result: unknown): void {
  const { then } = (result ?? {}) as { readonly then?: unknown }
  if (typeof then !== 'function') return
  // Its later calls are refused too: this refusal says it all.
  Promise.resolve(result).catch(() => undefined)
  const message = 'mutate(change): change may not be async. Await what you need before mutate: nothing was put in.'
  throw new InputError('invalid_input', message)
}

/** Puts nodes and edges into one turn, while the callback of `mutate` runs. */
export class Mutation {
  /** The turn that the nodes are put into. */
  readonly runId: Id
  private isOver = false
  private readonly draft: Draft
  private readonly created: Id[] = []

  constructor(draft: Draft, turn: Turn) {
    this.draft = draft
    this.runId = turn.id
  }

  /** Puts in a node. It runs as soon as its edges let it. */
  createNode(spec: NodeSpec): Node {
    this.requireOpen()
    return this.putNode(readSpec(spec))
  }

  private putNode(spec: NodeSpec): Node {
    const kind = this.draft.kinds.get(spec.kind)
    if (kind === undefined) {
      const known = [...this.draft.kinds.keys()].join(', ')
      throw new InputError('invalid_input', `There is no node kind "${spec.kind}". There are: ${known}.`)
    }
    const state = spec.state ?? (kind.executable ? 'pending' : 'finished')
    if (!kind.executable && state !== 'finished') {
      throw new InputError('invalid_input', `A ${spec.kind} is not executable: it can only be finished, not ${state}.`)
    }
    return this.findByKey(spec) ?? this.addNode(spec, state, kind.leaf)
  }

  private addNode(spec: NodeSpec, state: NonNullable<NodeSpec['state']>, isLeaf: boolean): Node {
    const node = this.draft.addNode(this.draft.turn(this.runId), {
      id: this.draft.freshId(),
      kind: spec.kind,
      purpose: spec.kind === 'agent_message' ? 'answer' : null,
      state,
      ...placeContent(spec),
      preview: spec.content === undefined ? '' : previewOf(textOf(spec.content), spec.kind, this.draft.kinds),
      metadata: isLeaf ? { ...spec.metadata, leaf: true, byHand: true } : { ...spec.metadata, byHand: true },
      effect: spec.effect ?? (spec.kind === 'agent_message' ? 'idempotent' : 'effectful'),
      idempotencyKey: spec.idempotencyKey ?? null,
      wakeAt: state === 'awaiting_approval' ? this.draft.now + APPROVAL_MS : null,
      endedAt: state === 'finished' ? this.draft.now : null,
    })
    if (state === 'awaiting_approval') pauseClocks(this.draft, this.runId)
    this.created.push(node.id)
    const turn = this.draft.turn(this.runId)
    this.draft.event(turn, node.id, { type: 'graph-change', change: 'node', detail: { kind: node.kind, state } })
    if (spec.kind === 'user_message' && spec.content !== undefined) this.tell(node, spec.content)
    return node
  }

  /** Reports a person's message. If the turn has no input yet, the message is its input. */
  private tell(node: Node, content: Content): void {
    const turn = this.draft.turn(this.runId)
    if (turn.input === null) this.draft.changeTurn(turn, { input: content as Json })
    tellMessage(this.draft, turn, node)
  }

  /** Puts an edge between two nodes, by their ids. The second one runs after the first. */
  createEdge(from: Id, to: Id, type: EdgeType): void {
    this.requireOpen()
    readOptions('createEdge(from, to, type)', { from: from ?? null, to: to ?? null, type: type ?? null }, EDGE)
    const source = this.nodeOf(from)
    const target = this.nodeOf(to)
    if (from === to) throw refused('cycle', `An edge from ${from} to itself would never let it run: leave it out.`)
    if (this.draft.edgesFrom(from).some((edge) => edge.to === to && edge.type === type)) return
    if (this.reaches(to, from)) {
      const message = `An edge from ${from} to ${to} would close a circle: neither could run first. Turn it round, or leave it out.`
      throw refused('cycle', message, { from, to })
    }
    if (type !== 'branch') this.block(source, target, type)
    this.draft.addEdge(source, target, type)
    const turn = this.draft.turn(this.runId)
    this.draft.event(turn, to, { type: 'graph-change', change: 'edge', detail: { from, to, type } })
  }

  /** Starts runnable nodes, and checks whether the turn is over. */
  finish(): void {
    this.requireOpen()
    for (const id of this.created) {
      const node = this.draft.node(id)
      if (node.state === 'pending' && node.blockers === 0) this.draft.claim(node)
    }
    this.draft.touchTurn(this.runId)
  }

  /** Refuses every later call: what it puts in would not be stored. */
  close(): void {
    this.isOver = true
  }

  private requireOpen(): void {
    if (!this.isOver) return
    const message =
      'This mutation is over: use it only inside the callback of mutate(), and call mutate() again for more.'
    throw new InputError('invalid_input', message)
  }

  private block(source: Node, target: Node, type: EdgeType): void {
    const held = findBlockingDenial(source)
    if (source.endedAt !== null && held === undefined && (type === 'sequence' || source.state === 'finished')) return
    const isWaiting = target.state === 'pending' || target.state === 'awaiting_approval'
    if (!isWaiting) {
      const message = `${target.id} is ${target.state}: an edge can no longer hold it back. Put in another node after ${source.id}.`
      throw refused('wrong_state', message, { nodeId: target.id, state: target.state })
    }
    if (source.endedAt === null) {
      if (source.turnId !== target.turnId) {
        const message = `${target.id} is in another turn: it cannot wait for ${source.id}. Put it into the turn ${source.turnId}.`
        throw refused('not_related', message, { nodeId: target.id, runId: source.turnId })
      }
      this.draft.watchNode(source)
      this.draft.changeNode(target, { blockers: target.blockers + 1 })
      return
    }
    const message = `blocked by ${source.kind} ${source.id} (${source.state}) over a ${type} edge`
    const failure = held ?? { code: 'blocked_by_failed_dependencies', message }
    endNode(this.draft, target, { state: 'skipped', failure })
  }

  private nodeOf(id: Id): Node {
    const node = this.draft.findNode(id)
    const turn = this.draft.turn(this.runId)
    if (node === undefined || node.conversationId !== turn.conversationId) {
      throw new NotFoundError('not_found', `There is no node ${id} in this conversation.`)
    }
    return node
  }

  private findByKey(spec: NodeSpec): Node | undefined {
    if (spec.idempotencyKey === undefined) return undefined
    const known =
      this.created.map((id) => this.draft.node(id)).find((node) => isKeyed(node, spec)) ??
      this.draft.stored.nodeByKey(this.runId, spec.kind, spec.idempotencyKey)
    if (known === undefined) return undefined
    const { input, output } = placeContent(spec)
    const same = spec.state !== 'finished' || canonicalJson(known.output as Json) === canonicalJson(output as Json)
    if (same && canonicalJson(known.input as Json) === canonicalJson(input as Json)) return known
    const message = `The key "${spec.idempotencyKey}" was used for another ${spec.kind} in this turn: ask for the same, or take another key.`
    throw refused('key_used', message, { key: spec.idempotencyKey })
  }

  private reaches(from: Id, goal: Id): boolean {
    const seen = new Set<Id>()
    const open = [from]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (id === goal) return true
      if (seen.has(id)) continue
      seen.add(id)
      for (const edge of this.draft.edgesFrom(id)) open.push(edge.to)
    }
    return false
  }
}

/** A checked copy of a node to put in: later changes of what was given have no effect. */
function readSpec(given: NodeSpec): NodeSpec {
  const { input, output } = readOptions('createNode()', given, SPEC)
  if (input !== undefined) readOptions('createNode({ input })', input, INPUT)
  if (output !== undefined) readOptions('createNode({ output })', output, OUTPUT)
  const json = toJson(given)
  if (json.ok) return json.value as unknown as NodeSpec
  throw new InputError('invalid_input', `createNode() takes JSON only: ${json.error}`)
}

function isCall(value: unknown): boolean {
  if (record(value) !== null) return false
  const { id, name, input } = value as { readonly [key: string]: unknown }
  return typeof id === 'string' && typeof name === 'string' && input !== undefined
}

function isKeyed(node: Node, spec: NodeSpec): boolean {
  return node.kind === spec.kind && node.idempotencyKey === spec.idempotencyKey
}

/** Messages of people keep their text as input, those of agents as output. */
function placeContent(spec: NodeSpec): { input: NodeInput; output: NodeOutput } {
  const { content, input = {}, output = {} } = spec
  if (content === undefined) return { input, output }
  const isSpoken = ['agent_message', 'character_message', 'summary', 'task'].includes(spec.kind)
  return isSpoken ? { input, output: { ...output, content } } : { input: { ...input, content }, output }
}

function turnOf(draft: Draft, scope: MutationScope): Turn {
  if (scope.runId !== undefined) {
    const turn = draft.findTurn(scope.runId)
    if (turn?.conversationId === scope.conversationId && turn.state === 'running') {
      return bindTurn(draft, unlessStopped(turn), scope.ceiling)
    }
    throw new NotFoundError('not_found', `There is no running turn ${scope.runId} in this conversation.`)
  }
  const conversation = draft.findConversation(scope.conversationId)
  if (conversation === undefined)
    throw new NotFoundError('not_found', `There is no conversation ${scope.conversationId}.`)
  if (conversation.activeTurnId !== null) {
    const runId = conversation.activeTurnId
    const how = `Put nodes into it with mutate(change, { runId: '${runId}' }), or wait until it has ended.`
    throw refused('busy', `A turn is running in ${conversation.id}. ${how}`, { runId })
  }
  requireOpen(conversation)
  return beginTurn(draft, conversation, scope)
}

function unlessStopped(turn: Turn): Turn {
  if (turn.cancel === null) return turn
  const message = `The turn ${turn.id} was asked to stop: nothing more can be put into it. Begin another when it has ended.`
  throw refused('busy', message, { runId: turn.id })
}

import { InputError, NotFoundError } from '../../base/error.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import { type Content, textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { previewOf } from '../../graph/kinds.ts'
import { refused, requireOpen } from '../../graph/refused.ts'
import type { EdgeType, Effect, Id, Node, NodeInput, NodeOutput, Turn } from '../../graph/rows.ts'
import { pauseClocks } from '../turn/account.ts'
import { APPROVAL_MS } from '../turn/approve.ts'
import { endNode, findBlockingDenial } from '../turn/end-node.ts'
import { beginTurn, type TurnBounds, tellMessage } from '../turn/open-turn.ts'

export interface NodeSpec {
  readonly kind: string
  /** Executable kinds: pending (default), awaiting_approval or finished. Others are always finished. */
  readonly state?: 'pending' | 'awaiting_approval' | 'finished'
  /** The message: input of a user's or developer's message, output of an agent's. */
  readonly content?: Content
  readonly input?: NodeInput
  readonly output?: NodeOutput
  readonly metadata?: { readonly [key: string]: Json }
  readonly effect?: Effect
  /** A repeated key with an equal request gives the node that it made before; with another request it is a conflict. */
  readonly idempotencyKey?: string
}

export interface MutationScope extends TurnBounds {
  readonly conversationId: Id
  /** Left out: a new turn. */
  readonly runId?: Id
}

/**
 * Adds nodes and edges to a conversation, all or none. Runnable ones start; a turn whose last node cannot be its last word
 * grows an answer.
 */
export function planMutate<T>(draft: Draft, scope: MutationScope, change: (mutation: Mutation) => T): T {
  const mutation = new Mutation(draft, turnOf(draft, scope))
  const result = change(mutation)
  if (draft.turn(mutation.runId).nodeCount === 0) {
    throw new InputError('invalid_input', 'A new turn needs at least one node: nothing was put in.')
  }
  mutation.finish()
  return result
}

export class Mutation {
  readonly runId: Id
  private readonly draft: Draft
  private readonly created: Id[] = []

  constructor(draft: Draft, turn: Turn) {
    this.draft = draft
    this.runId = turn.id
  }

  createNode(spec: NodeSpec): Node {
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

  createEdge(from: Id, to: Id, type: EdgeType): void {
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

  /** Starts runnable nodes, skips those that can no longer run, and checks whether the turn is over. */
  finish(): void {
    for (const id of this.created) {
      const node = this.draft.node(id)
      if (node.state === 'pending' && node.blockers === 0) this.draft.claim(node)
    }
    this.draft.touchTurn(this.runId)
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
    if (turn?.conversationId === scope.conversationId && turn.state === 'running') return unlessStopped(turn)
    throw new NotFoundError('not_found', `There is no running turn ${scope.runId} in this conversation.`)
  }
  const conversation = draft.findConversation(scope.conversationId)
  if (conversation === undefined)
    throw new NotFoundError('not_found', `There is no conversation ${scope.conversationId}.`)
  if (conversation.activeTurnId !== null) {
    const message = `A turn is running in ${conversation.id}: name it, or wait until it has ended.`
    throw refused('busy', message, { runId: conversation.activeTurnId })
  }
  requireOpen(conversation)
  return beginTurn(draft, conversation, scope)
}

function unlessStopped(turn: Turn): Turn {
  if (turn.cancel === null) return turn
  const message = `The turn ${turn.id} was asked to stop: nothing more can be put into it. Begin another when it has ended.`
  throw refused('busy', message, { runId: turn.id })
}

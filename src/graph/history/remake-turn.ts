import { freshIds } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import { type Content, textOf } from '../content.ts'
import { changedAccount } from '../copy.ts'
import type { Draft } from '../draft.ts'
import { previewOf } from '../kinds.ts'
import type { Conversation, Edge, Id, Node, Turn, TurnHistory } from '../rows.ts'
import { APPROVAL_MS, approvalOf } from '../turn/approve.ts'
import { askedInOtherWords, askedOf } from '../turn/asked.ts'
import { beginTurn, type TurnBounds } from '../turn/begin-turn.ts'
import { endNode, heldBack } from '../turn/end-node.ts'
import { expansionIds, slotOf, taskIdsOf } from '../turn/expansion-ids.ts'
import { nextCall } from '../turn/next-call.ts'
import { tellMessage } from '../turn/open-turn.ts'
import { pauseClocks } from '../turn/pause.ts'
import { withoutApprovals } from '../turn/without-approvals.ts'
import { isOfWholeTurn, moveFold } from './move-fold.ts'

/** Where a change is made, and within which bounds. */
export interface ChangeScope {
  readonly conversationId: Id
  readonly bounds: TurnBounds
  /** What becomes of children in the background that the new history does not tell of. Default: `cancel`. */
  readonly background?: 'cancel' | 'keep' | undefined
}

/** A turn made anew from one that was: what is kept of it is copied with its results, the rest is done again. */
export interface Remake {
  /** Told in the log: retry, rerun, edit or fork. */
  readonly change: string
  readonly source: Turn
  /** The node the change is about. */
  readonly about: Node
  /** Nodes that have ended and stand as they are. */
  readonly kept: readonly Node[]
  /** Nodes that run again, as a new version of themselves. */
  readonly again: readonly Node[]
  /** What people said, in other words. */
  readonly edited: { readonly node: Node; readonly content: Content } | null
  /** A model call that reads the results of these nodes, as a version of the one that did. */
  readonly next: { readonly after: readonly Node[]; readonly version: Node | null } | null
  readonly after: number
  readonly bounds: TurnBounds
}

export interface Remade {
  readonly turn: Turn
  /** The new version of the node the change is about, or what takes up from it. */
  readonly nodeId: Id
}

/** The lane must be idle. The source turn is not changed; what takes its place is its caller's to say. */
export function remakeTurn(draft: Draft, lane: Conversation, asked: Remake): Remade {
  const remake = { ...asked, kept: asked.kept.filter((node) => !isOfWholeTurn(node)) }
  const { source, bounds } = remake
  const isFork = source.laneId !== lane.id
  const history: TurnHistory = { after: remake.after, source: source.id, merges: [], fold: null }
  const turn = beginTurn(draft, lane, { ...bounds, input: inputOf(remake), attributes: source.attributes, history })
  const made = new Making(draft, turn, { remake, isFork, ids: newIds(draft, remake) })
  made.all()
  return { turn: draft.turn(turn.id), nodeId: made.newId(remake.about.id) ?? made.nextId ?? turn.id }
}

function inputOf({ source, edited }: Remake): Json {
  if (edited === null || edited.node.kind !== 'user_message') return source.input
  return typeof edited.content === 'string' ? edited.content : source.input
}

interface Parts {
  readonly remake: Remake
  readonly isFork: boolean
  readonly ids: ReadonlyMap<Id, Id>
}

class Making {
  nextId: Id | null = null
  private readonly draft: Draft
  private readonly turnId: Id
  private readonly parts: Parts
  private readonly open: Id[] = []

  constructor(draft: Draft, { id }: Turn, parts: Parts) {
    this.draft = draft
    this.turnId = id
    this.parts = parts
  }

  newId(id: Id): Id | undefined {
    return this.parts.ids.get(id)
  }

  all(): void {
    const { draft, turnId } = this
    const { remake } = this.parts
    const all = allOf(draft, remake)
    this.tell()
    for (const node of all) this.add(node)
    this.count()
    const { ids, isFork } = this.parts
    moveFold(draft, { source: remake.source, turnId, kept: remake.kept, ids, isFork })
    const blocked = all.flatMap((node) => this.join(node))
    if (remake.next !== null) blocked.push(...this.addNext(remake.next))
    draft.changeTurn(draft.turn(turnId), { entryNodeId: this.open[0] ?? this.newId(all[0]?.id ?? '') ?? turnId })
    for (const { to, from } of blocked) this.skip(to, from)
    for (const id of this.open) {
      const node = draft.node(id)
      if (node.state === 'pending' && node.blockers === 0) draft.claim(node)
    }
    draft.touchTurn(turnId)
  }

  private tell(): void {
    const { change, source, about, kept } = this.parts.remake
    const detail = { node: about.id, turn: source.id, lane: source.laneId, kept: kept.length }
    this.draft.event(this.turn, null, { type: 'graph-change', change, detail })
  }

  private get turn(): Turn {
    return this.draft.turn(this.turnId)
  }

  private add(node: Node): void {
    const { again, edited } = this.parts.remake
    if (edited?.node.id === node.id) return this.addEdited(node, edited.content)
    if (again.includes(node)) return this.addAgain(node)
    this.draft.addNode(this.turn, {
      ...sameAs(node),
      id: this.newId(node.id) ?? node.id,
      state: node.state,
      output: node.output,
      preview: node.preview,
      metadata: copied(node),
      failure: node.failure,
      attempt: node.attempt,
      marks: node.marks,
      endedAt: this.draft.now,
      ...this.version(node),
    })
    if (node.state === 'uncertain') this.tellDoubt(node)
  }

  private addAgain(node: Node): void {
    const added = this.draft.addNode(this.turn, {
      ...nextAttempt(this.draft, node),
      id: this.newId(node.id) ?? node.id,
      // What may have had an effect is asked for with the same key: who heeds it does it once.
      idempotencyKey: this.parts.isFork ? null : (node.idempotencyKey ?? (node.kind === 'task' ? node.id : null)),
      ...this.version(node),
    })
    askAgain(this.draft, added)
    this.open.push(added.id)
    if (!this.parts.isFork) this.draft.addEdge(node, added, 'branch')
  }

  private addEdited(node: Node, content: Content): void {
    const { draft } = this
    const asked = askedInOtherWords(askedOf(draft.stored, this.parts.remake.source), content)
    const added = draft.addNode(this.turn, {
      ...sameAs(node),
      id: this.newId(node.id) ?? node.id,
      state: 'finished',
      input: { ...node.input, content },
      preview: previewOf(textOf(content), node.kind, draft.kinds),
      metadata: asked === undefined ? node.metadata : { ...node.metadata, asked },
      attempt: node.attempt + 1,
      retryOf: node.id,
      endedAt: draft.now,
      ...this.version(node),
    })
    if (!this.parts.isFork) draft.addEdge(node, added, 'branch')
    tellMessage(draft, this.turn, added)
  }

  /** In its own lane a node takes the place of what it was made from; in another it is the first of its kind. */
  private version({ versionSet }: Node): { versionSet?: Id } {
    return this.parts.isFork ? {} : { versionSet }
  }

  private tellDoubt(node: Node): void {
    const id = this.newId(node.id) ?? node.id
    const { account } = this.turn
    this.draft.changeTurn(this.turn, { account: changedAccount(account, { uncertain: [...account.uncertain, id] }) })
    const tool = node.input.call?.name ?? node.kind
    this.draft.event(this.turn, id, { type: 'uncertain', tool, reason: node.failure?.message ?? '' })
  }

  /** What is kept counts as it did: a turn made anew has no more calls left than it had. What it cost was paid before. */
  private count(): void {
    const { kept } = this.parts.remake
    const spoken = kept.filter(({ kind, purpose, state }) => isTurn(kind, purpose) && state === 'finished')
    const calls = kept.reduce((sum, { output }) => sum + (output.calls?.length ?? 0), 0)
    const { account } = this.turn
    this.draft.changeTurn(this.turn, {
      account: changedAccount(account, { modelCalls: spoken.length, toolCalls: calls }),
    })
  }

  /** The edges it had, as far as both ends are here. Gives those over which it can never run. */
  private join(node: Node): { to: Id; from: Node }[] {
    const { draft } = this
    const to = draft.node(this.newId(node.id) ?? '')
    const blocked: { to: Id; from: Node }[] = []
    for (const { from, type } of draft.edgesTo(node.id)) {
      const source = draft.findNode(this.newId(from) ?? '')
      if (type === 'branch' || source === undefined || source.turnId !== this.turnId) continue
      draft.addEdge(source, draft.node(to.id), type)
      if (to.endedAt !== null) continue
      if (source.endedAt === null) draft.changeNode(draft.node(to.id), { blockers: draft.node(to.id).blockers + 1 })
      else if (heldBack(source) !== undefined) blocked.push({ to: to.id, from: source })
      else if (type === 'dependency' && source.state !== 'finished') blocked.push({ to: to.id, from: source })
    }
    return blocked
  }

  private skip(id: Id, from: Node): void {
    const node = this.draft.node(id)
    if (node.endedAt !== null) return
    const message = `blocked by ${from.kind} ${from.id} (${from.state}) over a dependency edge`
    const failure = heldBack(from) ?? { code: 'blocked_by_failed_dependencies', message }
    endNode(this.draft, node, { state: 'skipped', failure })
  }

  /** Gives what a denial of which keeps it from running. */
  private addNext({ after, version }: NonNullable<Remake['next']>): { to: Id; from: Node }[] {
    const { draft } = this
    const call = nextCall(this.turn, 0)
    const before = after.map(({ id }) => draft.node(this.newId(id) ?? ''))
    const [message] = after
    const id = this.nextIdAfter(message)
    const open = before.filter(({ endedAt }) => endedAt === null)
    const added = draft.addNode(this.turn, {
      id,
      kind: 'agent_message',
      purpose: call.purpose,
      effect: 'idempotent',
      blockers: open.length,
      input: call.nudge === null ? {} : { nudge: call.nudge },
      metadata: call.limit === null ? {} : { limit: call.limit },
      ...(version === null || this.parts.isFork
        ? {}
        : { versionSet: version.versionSet, attempt: version.attempt + 1, retryOf: version.id }),
    })
    for (const node of before) draft.addEdge(node, added, 'sequence')
    if (version !== null && !this.parts.isFork) draft.addEdge(version, added, 'branch')
    this.open.push(id)
    this.nextId = id
    return before.filter((node) => heldBack(node) !== undefined).map((from) => ({ to: id, from }))
  }

  /** As the message that made the calls would have named it. */
  private nextIdAfter(first: Node | undefined): Id {
    const caller = first === undefined ? undefined : callerOf(this.parts.remake.kept, first)
    const callerId = caller === undefined ? undefined : this.newId(caller.id)
    const count = caller?.output.calls?.length ?? 0
    const derived = callerId === undefined ? undefined : expansionIds(callerId, count)[count]
    return derived ?? freshIds(this.draft.now, 1)[0] ?? this.turnId
  }
}

/** In the order of their turn: what took a node's place there stands where that one stood. */
function allOf(draft: Draft, { kept, again, edited }: Remake): Node[] {
  const all = [...kept, ...again, ...(edited === null ? [] : [edited.node])]
  const places = new Map(all.map((node) => [node.id, placeOf(draft, node)]))
  return all.sort((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0))
}

function placeOf(draft: Draft, node: Node): number {
  const before = node.retryOf === null ? undefined : draft.findNode(node.retryOf)
  return before?.turnId === node.turnId && before.marks?.replacedBy === node.id ? placeOf(draft, before) : node.ordinal
}

/** The message among these that made the call of a task; the message itself where it is one. */
export function callerOf(nodes: readonly Node[], one: Node): Node | undefined {
  return nodes.find((node) => {
    if (node.id === one.id) return (node.output.calls?.length ?? 0) > 0
    return taskIdsOf(node).includes(slotOf(one))
  })
}

/** A task's id comes from its message; all others are new. */
function newIds(draft: Draft, remake: Remake): Map<Id, Id> {
  const all = allOf(draft, remake)
  const fresh = freshIds(draft.now, all.length)
  const ids = new Map(all.map(({ id }, at) => [id, fresh[at] ?? id]))
  for (const message of remake.kept) {
    const slots = taskIdsOf(message)
    const made = slots.length === 0 ? [] : expansionIds(ids.get(message.id) ?? message.id, slots.length)
    for (const [at, slot] of slots.entries()) {
      const task = all.find((node) => slotOf(node) === slot)
      const id = made[at]
      if (task !== undefined && id !== undefined) ids.set(task.id, id)
    }
  }
  return ids
}

function sameAs({ kind, purpose, input, effect, timeoutMs, idempotencyKey }: Node) {
  return { kind, purpose, input, effect, timeoutMs, idempotencyKey }
}

/** A node as it was asked, to be done once more. One that a person has denied is asked for again. */
export function nextAttempt(draft: Draft, node: Node) {
  const wasDenied = isDenied(node)
  const approval = wasDenied ? { approval: { ...(node.metadata['approval'] as object), since: draft.now } } : {}
  return {
    ...sameAs(node),
    state: wasDenied ? ('awaiting_approval' as const) : ('pending' as const),
    metadata: { ...withoutAttempt(node.metadata), ...approval },
    wakeAt: wasDenied ? draft.now + APPROVAL_MS : null,
    attempt: node.attempt + 1,
    retryOf: node.id,
  }
}

function isDenied({ state, failure }: Node): boolean {
  return state === 'rejected' && failure?.code === 'approval_denied'
}

export function askAgain(draft: Draft, node: Node): void {
  if (node.state !== 'awaiting_approval') return
  pauseClocks(draft, node.turnId)
  const { request, reason, input, digest } = approvalOf(node)
  const expiresAt = node.wakeAt ?? draft.now
  draft.due(expiresAt)
  const call = node.input.call ?? null
  draft.event(draft.turn(node.turnId), node.id, {
    type: 'approval-request',
    call,
    request,
    input,
    digest,
    reason,
    expiresAt,
  })
}

/** What only one attempt has to say of itself. */
const OF_ONE_ATTEMPT = [
  'answered',
  'approval',
  'approved',
  'approvedBy',
  'changes',
  'copyOf',
  'denied',
  'deniedBy',
  'edited',
  'held',
  'response',
  'slot',
  'subagent',
  'waits',
  'compacted',
]

function withoutAttempt(metadata: Node['metadata']): { readonly [key: string]: Json } {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !OF_ONE_ATTEMPT.includes(key)))
}

function copied({ id, metadata }: Node): Node['metadata'] {
  const { slot: _, ...rest } = withoutApprovals(metadata)
  return { ...rest, copyOf: id }
}

function isTurn(kind: string, purpose: Node['purpose']): boolean {
  return kind === 'agent_message' && purpose !== 'wrap_up' && purpose !== 'brief' && purpose !== 'summarize'
}

/** All nodes of its turn that come after a node, over any number of blocking edges. */
export function descendantsOf(draft: Draft, node: Node): Set<Id> {
  const found = new Set<Id>()
  const open: Id[] = [node.id]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const { to, type } of draft.edgesFrom(id) as readonly Edge[]) {
      if (type === 'branch' || found.has(to) || draft.node(to).turnId !== node.turnId) continue
      found.add(to)
      open.push(to)
    }
  }
  return found
}

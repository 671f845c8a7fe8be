import type { Json } from '../../base/json.ts'
import { stackCeilings } from '../../grant/ceiling.ts'
import { type Content, textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { previewOf } from '../../graph/kinds.ts'
import { changeLane, headOf, laneOf, turnAt, withSkip } from '../../graph/lane.ts'
import { changedAccount } from '../../graph/limits.ts'
import { refused } from '../../graph/refused.ts'
import { keptOptions } from '../../graph/rows.made.ts'
import type { Conversation, Edge, Fold, Id, Node, Turn, TurnHistory } from '../../graph/rows.ts'
import { expansionIds, readAskedSlots, replaceAskedInput, slotOf, taskIdsOf } from '../../graph/tasks.ts'
import { deliver } from '../delegation/background.ts'
import { isMentioned } from '../delegation/session.ts'
import { pauseClocks } from '../turn/account.ts'
import { approvalOf } from '../turn/approval-of.ts'
import { APPROVAL_MS } from '../turn/approve.ts'
import { stopBackground } from '../turn/cancel.ts'
import { foldUpTo, putFold, type SummaryFacts } from '../turn/compaction.ts'
import { endNode, findBlockingDenial } from '../turn/end-node.ts'
import { nextCall } from '../turn/expand.ts'
import { type Asked, beginTurn, tellMessage } from '../turn/open-turn.ts'
import { withoutApprovals } from '../turn/say.ts'

/** Where a change happens, who asks for it, and within which bounds. */
export interface ChangeScope extends Asked {
  readonly conversationId: Id
  /** Whether background children that the new history does not mention are cancelled. Default: `cancel`. */
  readonly background?: 'cancel' | 'keep' | undefined
}

/** A turn made anew from an older one: kept nodes are copied with their results, the rest runs again. */
export interface RemakePlan extends Asked {
  /** The name of the change in the event: retry, rerun, edit or fork. */
  readonly change: string
  readonly source: Turn
  /** The node that the change is about. */
  readonly about: Node
  /** Ended nodes that are copied as they are. */
  readonly kept: readonly Node[]
  /** Nodes that run again, as a new version of themselves. */
  readonly again: readonly Node[]
  /** A message of a person with its new text. */
  readonly edited: { readonly node: Node; readonly content: Content } | null
  /** A model call that reads the results of these nodes, as a version of the one that did. */
  readonly next: { readonly after: readonly Node[]; readonly version: Node | null } | null
  readonly after: number
}

export interface RemakeResult {
  readonly turn: Turn
  /** The new version of the node the change is about, or the node that continues from it. */
  readonly nodeId: Id
}

/** Makes a turn anew. The lane must be idle. The source turn stays unchanged; the caller records what replaces it. */
export function remakeTurn(draft: Draft, lane: Conversation, plan: RemakePlan): RemakeResult {
  const remake = { ...plan, kept: plan.kept.filter((node) => !isOfWholeTurn(node)) }
  const { source } = remake
  const isFork = source.laneId !== lane.id
  const merges = source.history?.merges ?? []
  const history: TurnHistory = { after: remake.after, source: source.id, merges, fold: null }
  const ceiling = stackCeilings(source.ceiling, remake.caller)
  const asked = { input: inputOf(remake), attributes: source.attributes, history, ceiling }
  const turn = beginTurn(draft, lane, { ...remake.boundsUnder(ceiling), ...asked })
  const made = new TurnMaker(draft, turn, { remake, isFork, ids: newIds(draft, remake) })
  made.all()
  return { turn: draft.turn(turn.id), nodeId: made.newId(remake.about.id) ?? made.nextId ?? turn.id }
}

function inputOf({ source, edited }: RemakePlan): Json {
  if (edited === null || edited.node.kind !== 'user_message') return source.input
  return typeof edited.content === 'string' ? edited.content : source.input
}

interface RemakeParts {
  readonly remake: RemakePlan
  readonly isFork: boolean
  readonly ids: ReadonlyMap<Id, Id>
}

class TurnMaker {
  nextId: Id | null = null
  private readonly draft: Draft
  private readonly turnId: Id
  private readonly parts: RemakeParts
  private readonly open: Id[] = []

  constructor(draft: Draft, { id }: Turn, parts: RemakeParts) {
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
    if (node.state === 'uncertain' && node.marks?.settled === undefined) this.tellDoubt(node)
  }

  private addAgain(node: Node): void {
    const added = this.draft.addNode(this.turn, {
      ...nextAttempt(this.draft, node),
      id: this.newId(node.id) ?? node.id,
      // A call that may have had an effect keeps its idempotency key: a tool that honours the key acts once.
      idempotencyKey: this.parts.isFork ? null : (node.idempotencyKey ?? (node.kind === 'task' ? node.id : null)),
      ...this.version(node),
    })
    askAgain(this.draft, added)
    this.open.push(added.id)
    if (!this.parts.isFork) this.draft.addEdge(node, added, 'branch')
  }

  private addEdited(node: Node, content: Content): void {
    const { draft } = this
    const asked = replaceAskedInput(readAskedSlots(draft.stored, this.parts.remake.source), content)
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

  /** In its own lane a node joins the versions of its origin; in another lane it is the first of its kind. */
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

  /** Counts kept calls again: a turn made anew has no more calls left than the original. Their cost was paid before. */
  private count(): void {
    const { kept } = this.parts.remake
    const spoken = kept.filter(({ kind, purpose, state }) => isTurn(kind, purpose) && state === 'finished')
    const calls = kept.reduce((sum, { output }) => sum + (output.calls?.length ?? 0), 0)
    const { account } = this.turn
    this.draft.changeTurn(this.turn, {
      account: changedAccount(account, { modelCalls: spoken.length, toolCalls: calls }),
    })
  }

  /** Copies the edges of a node whose ends are both here. Gives the edges over which it can never run. */
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
      else if (findBlockingDenial(source) !== undefined) blocked.push({ to: to.id, from: source })
      else if (type === 'dependency' && source.state !== 'finished') blocked.push({ to: to.id, from: source })
    }
    return blocked
  }

  private skip(id: Id, from: Node): void {
    const node = this.draft.node(id)
    if (node.endedAt !== null) return
    const message = `blocked by ${from.kind} ${from.id} (${from.state}) over a dependency edge`
    const failure = findBlockingDenial(from) ?? { code: 'blocked_by_failed_dependencies', message }
    endNode(this.draft, node, { state: 'skipped', failure })
  }

  /** Adds the next model call. Gives the denials that keep it from running. */
  private addNext({ after, version }: NonNullable<RemakePlan['next']>): { to: Id; from: Node }[] {
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
    return before.filter((node) => findBlockingDenial(node) !== undefined).map((from) => ({ to: id, from }))
  }

  /** The id that the message with the calls would have derived. */
  private nextIdAfter(first: Node | undefined): Id {
    const caller = first === undefined ? undefined : callerOf(this.parts.remake.kept, first)
    const callerId = caller === undefined ? undefined : this.newId(caller.id)
    const count = caller?.output.calls?.length ?? 0
    const derived = callerId === undefined ? undefined : expansionIds(callerId, count)[count]
    return derived ?? this.draft.freshId()
  }
}

/** All nodes in the order of their turn: a replacement stands where the original stood. */
function allOf(draft: Draft, { kept, again, edited }: RemakePlan): Node[] {
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

/** A task's id derives from its message; all others are new. */
function newIds(draft: Draft, remake: RemakePlan): Map<Id, Id> {
  const all = allOf(draft, remake)
  const fresh = draft.freshIds(all.length)
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

function sameAs(node: Node) {
  const { kind, purpose, input, idempotencyKey } = node
  return { kind, purpose, input, idempotencyKey, ...keptOptions(node) }
}

/** The fields of a node that is to run once more. A call that a person denied is asked for again. */
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
  draft.noteDue(expiresAt)
  const call = node.input.call ?? null
  draft.event(draft.turn(node.turnId), node.id, {
    type: 'approval-request',
    call,
    request,
    input,
    seen: digest,
    reason,
    expiresAt,
  })
}

/** Metadata that belongs to a single attempt. */
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

/** All nodes of its turn behind a node, over any number of blocking edges. */
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

export interface MovedFold {
  readonly source: Turn
  readonly turnId: Id
  /** Nodes of the source that are in the new turn, by their ids there. */
  readonly kept: readonly Node[]
  readonly ids: ReadonlyMap<Id, Id>
  readonly isFork: boolean
}

/**
 * Moves a summary to a turn made anew: the newest one inside the old turn whose nodes were all kept. A summary that covers
 * nodes set aside stays behind.
 */
function moveFold(draft: Draft, moving: MovedFold): void {
  const moved = move(draft, moving, moving.source.history?.fold ?? null)
  if (moved === null) return
  const turn = draft.turn(moving.turnId)
  putFold(draft, turn, moved)
  changeLane(draft, draft.conversation(turn.laneId), { fold: turn.ordinal })
}

/** True for a summary of whole turns, which includes the end of the old turn and so must not be kept in its replacement. */
function isOfWholeTurn({ kind, metadata }: Node): boolean {
  return kind === 'summary' && metadata['folds'] !== undefined
}

function move(draft: Draft, moving: MovedFold, fold: Fold | null): Fold | null {
  if (fold === null) return null
  const { source, turnId, ids, isFork } = moving
  const facts = draft.node(fold.summaryId).metadata as unknown as SummaryFacts
  const earlier = move(draft, moving, facts.previousFold)
  const summaryId = ids.get(fold.summaryId)
  const upTo = foldPlaceOf(draft, moving, fold)
  if (summaryId === undefined || upTo === null) return earlier
  const previous = isFork ? null : fold.previous
  const summary = draft.node(summaryId)
  const there: SummaryFacts = {
    folds: { ...facts.folds, to: facts.folds.to === source.id ? turnId : facts.folds.to },
    previousFold: earlier,
  }
  draft.changeNode(summary, { metadata: { ...summary.metadata, ...(there as unknown as { [key: string]: Json }) } })
  return { ...fold, summaryId, upTo, previous }
}

/** The last node that a summary covers, in the new turn; null if one is missing there. */
function foldPlaceOf(draft: Draft, { source, kept, ids }: MovedFold, { upTo }: Fold): number | null {
  if (upTo === null) return null
  const folded = draft.nodesOf(source.id).filter((node) => node.ordinal <= upTo && node.marks?.replacedBy == null)
  if (folded.some((node) => !SAID.includes(node.kind) && !kept.some(({ id }) => id === node.id))) return null
  const last = kept.findLast(({ ordinal }) => ordinal <= upTo)
  return last === undefined ? -1 : draft.node(ids.get(last.id) ?? '').ordinal
}

const SAID: readonly string[] = ['user_message', 'developer_message', 'system_message']

/** Makes a turn anew in its own lane: it replaces the old one and all later turns. */
export function replaceTurn(
  draft: Draft,
  remake: Omit<RemakePlan, 'after'> & Pick<ChangeScope, 'background'>,
): RemakeResult {
  const { source } = remake
  const after = source.history?.after ?? source.ordinal - 1
  const lane = draft.conversation(source.laneId)
  const told = mentionedChildren(draft, lane.id)
  const { skips, fold: current } = laneOf(lane)
  const fold = foldUpTo(draft, lane, { last: after, from: current })
  changeLane(draft, lane, { skips: withSkip(skips, [source.ordinal, lane.turnCount - 1]), fold })
  const remade = remakeTurn(draft, draft.conversation(lane.id), { ...remake, after })
  leaveChildren(draft, told, remake.background)
  return remade
}

/** Background children that the history of a lane mentions now. */
export function mentionedChildren(draft: Draft, laneId: Id): Id[] {
  return draft.conversation(laneId).background.filter((id) => isMentioned(draft, draft.link(id)))
}

/** Handles background children that were started in turns set aside: the new history does not mention them. */
export function leaveChildren(draft: Draft, told: readonly Id[], background: ChangeScope['background']): void {
  const left = told.map((id) => draft.link(id)).filter((link) => !isMentioned(draft, link))
  for (const link of left) if (link.outcome !== null) deliver(draft, link, 'undeliverable')
  if (background === 'keep' || left.length === 0) return
  const open = left.filter(({ outcome }) => outcome === null)
  stopBackground(draft, open, { cause: 'cancelled', reason: 'The turn that started it was set aside.' })
}

/** Only the last turn of a lane can be taken back without the turns after it. */
export function requireLast(draft: Draft, turn: Turn): void {
  const head = headOf(draft.conversation(turn.laneId))
  if (turn.ordinal === head) return
  const later = turnAt(draft.stored, turn.laneId, head)?.id
  const message = `Later turns were built on ${turn.id}: fork there instead, which leaves them as they are.`
  throw refused('later_turns', message, { runId: turn.id, lastRunId: later ?? null })
}

/** The newest version of a node that was replaced together with its turn. */
export function newestVersion(
  draft: Draft,
  { versionSet, laneId, turnId }: Pick<Node, 'versionSet' | 'laneId' | 'turnId'>,
): Id | undefined {
  const from = draft.turn(turnId).ordinal
  const lane = draft.stored.turnsOf(laneId, { limit: MOST_VERSIONS }).filter(({ ordinal }) => ordinal > from)
  for (const { id } of lane.toReversed()) {
    const found = draft.nodesOf(id).find((node) => node.versionSet === versionSet)
    if (found !== undefined) return found.id
  }
  return undefined
}

const MOST_VERSIONS = 1_000

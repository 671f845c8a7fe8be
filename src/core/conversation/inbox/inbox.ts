import { explainTurn, type WhyReason } from '../../audit/why.ts'
import type { Json } from '../../base/json.ts'
import { int, type OptionRules, readOptions, record, text } from '../../base/options.ts'
import { isDead } from '../../engine/lease.ts'
import { hindrance } from '../../engine/who-runs.ts'
import type { EngineRow } from '../../graph/commit.ts'
import { codeOf } from '../../graph/kinds.ts'
import type { Status } from '../../graph/outcome.ts'
import { type TreeReader, unlessTampered } from '../../graph/reader.ts'
import type { AgentRef, Conversation, Id, Node, Turn } from '../../graph/rows.ts'
import { doubtHash } from '../../rules/turn/seen-of.ts'
import { look, lookEach, openTopRuns } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'
import { approvalsIn, type PendingApproval, type PendingQuestion, questionsIn } from './pending.ts'

/** Where an item of the inbox stands, and since when. */
export interface InboxPlace {
  /** The conversation at the root. */
  readonly rootId: Id
  readonly runId: Id
  /** The node it is about; null where it is about a run. */
  readonly nodeId: Id | null
  /** The agent that needs a person. */
  readonly agent: string
  /** Agent names from the root to that agent. */
  readonly path: readonly string[]
  /** The owner of the conversation at the root. */
  readonly owner: string | null
  readonly since: number
  /** It in words. */
  readonly text: string
}

/** Something that needs a person. */
export type InboxItem = InboxPlace &
  (
    | {
        /** A request waits: `runtime.answer(nodeId, { allow, seen })`. */
        readonly type: 'approval'
        readonly approval: PendingApproval
      }
    | {
        /** An agent asks: `runtime.answer(nodeId, { text, seen })`. */
        readonly type: 'question'
        readonly question: PendingQuestion
      }
    | {
        /** The effect of a call may or may not have happened: `runtime.settle(nodeId, { happened, seen })`. */
        readonly type: 'uncertain'
        readonly tool: string
        readonly input: Json
        /** A hash of the call: it goes with the word that settles it. */
        readonly seen: string
      }
    | {
        /** The run is open, and nothing in it can go on by itself: `runtime.audit()` says more. */
        readonly type: 'stalled'
      }
    | {
        /** The run could go on, but no living process has the code that it needs. */
        readonly type: 'no-worker'
        /** The agent whose code is missing; empty where any process would do. */
        readonly needs: string
      }
    | {
        /** The newest run of a conversation ended otherwise than completed or cancelled. */
        readonly type: 'failed'
        readonly status: Status
      }
  )

export interface InboxQuery {
  /** Only what belongs to this owner. Default: everything. */
  readonly owner?: string
  /** The most items to give. Default 100. */
  readonly limit?: number
  /** The last one of the page before. */
  readonly after?: InboxItem
}

const QUERY: OptionRules<InboxQuery> = { owner: text, limit: int(0), after: record }

/** The most urgent first. */
const ORDER = ['approval', 'question', 'uncertain', 'stalled', 'no-worker', 'failed'] as const

type InboxType = (typeof ORDER)[number]
type Item<T extends InboxType> = Extract<InboxItem, { readonly type: T }>

/**
 * Everything that needs a person, over all trees. First the kind decides: a person is asked, an effect is uncertain, a run does
 * not go on, a run has failed. Among requests and questions, those that expire first come first; among failed runs, the newest;
 * else the oldest. Skips trees that were changed from outside.
 */
export async function inboxOf(store: Store, now: number, query: InboxQuery): Promise<InboxItem[]> {
  const { owner, limit = 100, after } = readOptions('inbox()', query, QUERY)
  const inbox = new Inbox(store, { now, owner, pageSize: Math.max(1, Math.min(limit, PAGE)) })
  const found: InboxItem[] = []
  if (limit === 0) return found
  const first = after === undefined ? 0 : Math.max(0, ORDER.indexOf(after.type))
  for (const type of ORDER.slice(first)) {
    for await (const item of inbox.read(type, after?.type === type ? after : undefined)) {
      found.push(item)
      if (found.length >= limit) return found
    }
  }
  return found
}

interface InboxScope {
  readonly now: number
  /** How many of one kind are read at once: as many as are wanted. */
  readonly pageSize: number
  readonly owner: string | undefined
}

/** The node that waits, with its place; undefined for a node of another owner. */
interface PlacedItem<Waiting> {
  readonly asked: Waiting
  readonly place: InboxPlace | undefined
}

interface WaitingQuery<Waiting> {
  readonly owner?: string
  readonly limit: number
  readonly after?: Waiting
}

class Inbox {
  private readonly store: Store
  private readonly scope: InboxScope
  private opened: Promise<readonly Turn[]> | undefined
  private explained: Promise<readonly Item<'stalled' | 'no-worker'>[]> | undefined

  constructor(store: Store, scope: InboxScope) {
    this.store = store
    this.scope = scope
  }

  read(type: InboxType, after: InboxItem | undefined): AsyncIterable<InboxItem> {
    if (type === 'approval') return this.approvals(after as Item<'approval'> | undefined)
    if (type === 'question') return this.questions(after as Item<'question'> | undefined)
    if (type === 'failed') return this.failed(after?.rootId)
    return this.oldestFirst(type, after)
  }

  private async *approvals(last: Item<'approval'> | undefined): AsyncGenerator<Item<'approval'>> {
    const read = (query: WaitingQuery<PendingApproval>) =>
      approvalsIn(this.store, query, (tree, asked) => ({ asked, place: this.placeOf(tree, asked, asked.request) }))
    for await (const { asked, place } of this.waiting(last?.approval, read)) {
      if (place !== undefined) yield { ...place, type: 'approval', approval: asked }
    }
  }

  private async *questions(last: Item<'question'> | undefined): AsyncGenerator<Item<'question'>> {
    const read = (query: WaitingQuery<PendingQuestion>) =>
      questionsIn(this.store, query, (tree, asked) => ({ asked, place: this.placeOf(tree, asked, asked.text) }))
    for await (const { asked, place } of this.waiting(last?.question, read)) {
      if (place !== undefined) yield { ...place, type: 'question', question: asked }
    }
  }

  /** Reads page after page of what waits for people. */
  private async *waiting<Waiting>(
    last: Waiting | undefined,
    read: (query: WaitingQuery<Waiting>) => Promise<PlacedItem<Waiting>[]>,
  ): AsyncGenerator<PlacedItem<Waiting>> {
    const { pageSize: limit } = this.scope
    let after = last
    for (;;) {
      const page = await read({ ...this.own, limit, ...(after === undefined ? {} : { after }) })
      yield* page
      after = page.at(-1)?.asked
      if (page.length < limit) return
    }
  }

  /** The part of a query that leaves out what belongs to others. */
  private get own(): { readonly owner?: string } {
    const { owner } = this.scope
    return owner === undefined ? {} : { owner }
  }

  private placeOf(tree: TreeReader, { nodeId, runId, since }: PendingApproval | PendingQuestion, words: string) {
    return this.place(tree, runId, { nodeId, since, text: words })
  }

  /** Undefined for what belongs to another owner. */
  private place(tree: TreeReader, runId: Id, about: Pick<InboxPlace, 'nodeId' | 'since' | 'text'>) {
    const turn = tree.turn(runId)
    const row = tree.conversation(turn?.conversationId ?? '')
    const root = tree.conversation(turn?.rootId ?? '')
    if (row === undefined || root === undefined || !this.isOwn(root)) return undefined
    return { rootId: root.id, runId, agent: row.agent.name, path: row.path, owner: root.owner, ...about }
  }

  private isOwn({ owner }: Pick<Conversation, 'owner'>): boolean {
    return this.scope.owner === undefined || owner === this.scope.owner
  }

  private async *oldestFirst(type: 'uncertain' | 'stalled' | 'no-worker', after: InboxItem | undefined) {
    this.explained ??= type === 'uncertain' ? undefined : this.explain()
    const all: readonly InboxItem[] = type === 'uncertain' ? await this.uncertain() : ((await this.explained) ?? [])
    const sorted = all.filter((item) => item.type === type).toSorted(byTime)
    for (const item of sorted) if (after === undefined || byTime(item, after) > 0) yield item
  }

  /** The unsettled calls of open runs, and of the newest run of each conversation. */
  private async uncertain(): Promise<InboxItem[]> {
    const found = new Map<Id, InboxItem>()
    const open = await lookEach(this.store, await this.open(), (tree, turn) => {
      const turns = unlessTampered(() => [...turnsBelow(tree, turn)]) ?? []
      return turns.flatMap((one) => this.uncertainIn(tree, one))
    })
    for (const item of open.flat()) if (item !== undefined) found.set(item.nodeId ?? '', item)
    for await (const items of this.ended('uncertain', (tree, turn) => this.uncertainIn(tree, turn))) {
      for (const item of items) found.set(item.nodeId ?? '', item)
    }
    return [...found.values()]
  }

  private uncertainIn(tree: TreeReader, { account }: Turn): InboxItem[] {
    return account.uncertain.flatMap((id) => unlessTampered(() => this.doubt(tree, tree.node(id))) ?? [])
  }

  private doubt(tree: TreeReader, node: Node | undefined): InboxItem | undefined {
    if (node === undefined) return undefined
    const { id, turnId, input, failure, endedAt, createdAt, kind } = node
    const about = { nodeId: id, since: endedAt ?? createdAt, text: failure?.message ?? '' }
    const place = this.place(tree, turnId, about)
    const { name: tool = kind, input: given = null } = input.call ?? {}
    return place === undefined ? undefined : { ...place, type: 'uncertain', tool, input: given, seen: doubtHash(node) }
  }

  private async *failed(before: Id | undefined): AsyncGenerator<Item<'failed'>> {
    const shown = (tree: TreeReader, turn: Turn): Item<'failed'> | undefined => {
      const { id, outcome, endedAt, createdAt } = turn
      const about = { nodeId: null, since: endedAt ?? createdAt, text: outcome?.error?.message ?? '' }
      const place = this.place(tree, id, about)
      return place === undefined || outcome === null ? undefined : { ...place, type: 'failed', status: outcome.status }
    }
    yield* this.ended('failed', shown, before)
  }

  private open(): Promise<readonly Turn[]> {
    this.opened ??= this.readOpen()
    return this.opened
  }

  /** The open runs that work for no other. */
  private async readOpen(): Promise<Turn[]> {
    const turns = await openTopRuns(this.store)
    const rootIn = (tree: TreeReader, { rootId }: Turn) => unlessTampered(() => tree.conversation(rootId))
    const roots = await lookEach(this.store, turns, rootIn)
    return turns.filter((_, at) => {
      const root = roots[at]
      return root !== undefined && this.isOwn(root)
    })
  }

  /** Shows the ended newest runs of root conversations in this state, newest conversation first. */
  private async *ended<Shown>(
    state: 'failed' | 'uncertain',
    show: (tree: TreeReader, turn: Turn) => Shown | undefined,
    first?: Id,
  ): AsyncGenerator<Shown> {
    const { pageSize: limit } = this.scope
    const newest = (tree: TreeReader, root: Conversation) => {
      const turn = unlessTampered(() => newestTurn(tree, root))
      // A run that ended uncertain and has nothing unsettled any more was left as it is.
      const isMeant = turn?.outcome != null && (state === 'uncertain' || turn.outcome.status !== 'uncertain')
      return isMeant ? show(tree, turn) : undefined
    }
    let before = first
    for (;;) {
      const since = before === undefined ? {} : { before }
      const roots = await this.store.roots({ ...this.own, state, limit, ...since })
      for (const shown of await lookEach(this.store, roots, newest)) if (shown !== undefined) yield shown
      before = roots.at(-1)?.id
      if (roots.length < limit) return
    }
  }

  /** The open runs that do not go on by themselves. */
  private async explain(): Promise<Item<'stalled' | 'no-worker'>[]> {
    const { now } = this.scope
    const engines = await this.store.engines()
    const living = engines.filter((engine) => !isDead(engine, now))
    const found: Item<'stalled' | 'no-worker'>[] = []
    for (const turn of await this.open()) {
      const since = await this.lastEventAt(turn)
      const items = await look(this.store, turn.rootId, (tree) => {
        const source = { store: this.store, now, engines, tree, knows: () => false, namesProcesses: false }
        const why = unlessTampered(() => explainTurn(source, turn))
        const all = (why?.reasons ?? []).flatMap((reason) => this.itemFor(tree, reason, since, living) ?? [])
        return all.filter(({ type }) => type === 'no-worker' || why?.goesOn === false)
      })
      found.push(...items)
    }
    return found
  }

  private itemFor(
    tree: TreeReader,
    reason: WhyReason,
    since: number,
    living: readonly EngineRow[],
  ): Item<'stalled' | 'no-worker'> | undefined {
    const { code, runId, nodeId, text: words } = reason
    const place = this.place(tree, runId, { nodeId, since, text: words })
    if (place === undefined) return undefined
    if (code === 'stuck') return { ...place, type: 'stalled' }
    if (code !== 'agent_missing' && code !== 'process_gone') return undefined
    const agent = agentIn(tree, runId)
    if (agent !== undefined && living.some((engine) => hindrance(engine, agent) === null)) return undefined
    return { ...place, type: 'no-worker', needs: agent === undefined ? '' : codeOf(agent) }
  }

  private async lastEventAt({ rootId, createdAt }: Turn): Promise<number> {
    const seq = (await look(this.store, rootId, (tree) => unlessTampered(() => tree.lastSeq(rootId)))) ?? 0
    const [last] = await this.store.events(rootId, Math.max(0, seq - 1), 1)
    return last?.at ?? createdAt
  }
}

const PAGE = 256

function byTime(a: InboxPlace, b: InboxPlace): number {
  return a.since - b.since || keyOf(a).localeCompare(keyOf(b))
}

function keyOf({ rootId, runId, nodeId }: InboxPlace): string {
  return `${rootId} ${runId} ${nodeId ?? ''}`
}

function newestTurn(tree: TreeReader, { id }: Conversation): Turn | undefined {
  return tree.turnsOf(id, { limit: 1 }).at(-1)
}

/** A run and the open runs that it has started. */
function* turnsBelow(tree: TreeReader, turn: Turn): Generator<Turn> {
  yield turn
  for (const { id } of tree.openLinks(turn.id)) {
    const child = tree.turn(id)
    if (child !== undefined) yield* turnsBelow(tree, child)
  }
}

function agentIn(tree: TreeReader, runId: Id): AgentRef | undefined {
  return tree.conversation(tree.turn(runId)?.conversationId ?? '')?.agent
}

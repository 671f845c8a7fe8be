// The usage of runs without an owner, by day, agent and model.
//
// Owns:      the sums of those runs. They are read from recorded events when somebody asks: a plain run writes nothing for them.
// Called by: `usageByDay`, where nobody asks for one owner.
// Must stay true:
//   - Each event is counted once. Only trees that went on since the last question are read again.
//   - The sums reach back as far as the feed of changes. A process that has not counted a tree before it was deleted cannot count
//     it any more: nothing else tells of these runs.

import { NO_USAGE } from '../../graph/content.ts'
import type { EventRow } from '../../graph/event.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'
import type { TreeChange } from '../../store/feed.ts'
import { look } from '../../store/look.ts'
import { addSpent, type DayUsage, spentKey } from '../../store/spent.ts'
import type { Store } from '../../store/store.ts'

const PAGE = 1_000

interface Days {
  readonly from: string
  readonly to: string
}

/** The sums of each store that somebody asked for. */
const known: WeakMap<Store, OwnerlessUsage> = new WeakMap()

/** Sums up the runs of no owner on these days. Their `owner` is the empty text. */
export function ownerlessUsage(store: Store, days: Days): Promise<DayUsage[]> {
  const usage = known.get(store) ?? new OwnerlessUsage(store)
  known.set(store, usage)
  return usage.between(days)
}

/** A tree that nobody owns. */
interface CountedTree {
  /** The day of its last change: it has no events of later days, unless a run of it goes on. */
  changedOn: string
  /** Runs that have begun and not ended, at any depth: more events of theirs may come without a change. */
  readonly open: Set<Id>
  /** Its last event that is counted. */
  seq: number
  readonly sums: Map<string, DayUsage>
}

class OwnerlessUsage {
  private readonly store: Store
  private readonly trees: Map<Id, CountedTree> = new Map()
  private readonly stale: Set<Id> = new Set()
  private cursor: string | null = null
  private last: Promise<unknown> = Promise.resolve()

  constructor(store: Store) {
    this.store = store
  }

  /** One question after another: two at a time would count events twice. */
  between(days: Days): Promise<DayUsage[]> {
    const asked = this.last.then(() => this.sum(days))
    this.last = asked.catch(() => undefined)
    return asked
  }

  private async sum({ from, to }: Days): Promise<DayUsage[]> {
    await this.follow()
    const sums = new Map<string, DayUsage>()
    for (const [id, tree] of this.trees) {
      if (tree.changedOn < from && tree.open.size === 0) continue
      if (tree.open.size > 0 || this.stale.has(id)) await this.read(id, tree)
      addAll(
        sums,
        [...tree.sums.values()].filter(({ day }) => day >= from && day <= to),
      )
    }
    return [...sums.values()]
  }

  private async follow(): Promise<void> {
    for (;;) {
      const { changes, cursor } = await this.store.changes(this.cursor, PAGE)
      for (const change of changes) if (change.owner === null) this.note(change)
      this.cursor = cursor
      if (changes.length === 0) return
    }
  }

  private note({ rootId, at }: TreeChange): void {
    const tree = this.trees.get(rootId) ?? { changedOn: '', open: new Set(), seq: 0, sums: new Map() }
    tree.changedOn = dayOf(at)
    this.trees.set(rootId, tree)
    this.stale.add(rootId)
  }

  private async read(id: Id, tree: CountedTree): Promise<void> {
    const found = await this.eventsAfter(id, tree)
    this.stale.delete(id)
    if (found === undefined) {
      this.trees.delete(id)
      return
    }
    addAll(tree.sums, found.counted)
    tree.seq = found.seq
  }

  /** The usage in the events of a tree that were not read before; undefined where the tree is gone. */
  private async eventsAfter(id: Id, { seq: after, open }: CountedTree) {
    const counted: DayUsage[] = []
    const starts: EventRow[] = []
    let seq = after
    for (let page = await this.store.events(id, seq, PAGE); page.length > 0; ) {
      noteOpen(open, page)
      starts.push(...page.filter(({ body, parentId }) => body.type === 'run-start' && parentId === null))
      counted.push(...page.flatMap(usageOf))
      seq = page.at(-1)?.seq ?? seq
      page = await this.store.events(id, seq, PAGE)
    }
    const runs = await look(this.store, id, (tree) => {
      return tree.conversation(id) === undefined ? undefined : starts.flatMap((start) => runOf(tree, start))
    })
    return runs === undefined ? undefined : { counted: [...counted, ...runs], seq }
  }
}

function addAll(sums: Map<string, DayUsage>, more: readonly DayUsage[]): void {
  for (const one of more) {
    const sum = sums.get(spentKey(one))
    sums.set(spentKey(one), sum === undefined ? one : addSpent(sum, one))
  }
}

function noteOpen(open: Set<Id>, page: readonly EventRow[]): void {
  for (const { body, runId } of page) {
    if (body.type === 'run-start') open.add(runId)
    if (body.type === 'run-end') open.delete(runId)
  }
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

function usageOf({ body, at, path }: EventRow): DayUsage[] {
  if (body.type !== 'usage') return []
  const { model, usage } = body
  return [{ owner: '', day: dayOf(at), agent: path.at(-1) ?? '', model, runs: 0, modelCalls: 1, usage }]
}

/** A run at the root counts, unless it only reports an end in the background. */
function runOf(tree: TreeReader, { runId, at, path }: EventRow): DayUsage[] {
  if (tree.turn(runId)?.wokenBy != null) return []
  const agent = path[0] ?? ''
  return [{ owner: '', day: dayOf(at), agent, model: '', runs: 1, modelCalls: 0, usage: NO_USAGE }]
}

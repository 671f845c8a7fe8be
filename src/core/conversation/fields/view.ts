import { forwardOf, type LiveEvent, type RunEvent } from '../../graph/event.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'

/** The events of one run below that the readers of a run see. */
interface Sight {
  /** Null for all types. */
  readonly types: ReadonlySet<string> | null
  readonly isCumulative: boolean
}

/**
 * Which events a reader gets: the forwarded ones, those that forwarded fields are read from, or all of the run and
 * below it.
 */
export type EventScope = 'forwarded' | 'fields' | 'all'

/** Where an event happened. */
type Place = Pick<RunEvent, 'runId' | 'parentId' | 'path'>

const ALL: Sight = { types: null, isCumulative: false }

/**
 * A tree's events as the readers of one run see them: those of the run and everything below it, without events that a
 * host in between does not forward. Computed from rows while reading: the records are the same for every view.
 */
export class EventView {
  private readonly tree: TreeReader
  private readonly known: Map<Id, Sight | null>
  /** The text that nodes have streamed so far, where deltas show the whole text. */
  private readonly said: Map<Id, Map<string, string>> = new Map()

  private readonly sees: EventScope

  constructor(tree: TreeReader, runId: Id, sees: EventScope = 'forwarded') {
    this.tree = tree
    this.sees = sees
    this.known = new Map([[runId, ALL]])
  }

  /** Reads all rows that `show` needs for these events. */
  prepare(events: readonly Place[]): void {
    for (const event of events) this.sightAt(event)
  }

  /** Returns the event as the reader sees it; undefined when it is hidden. */
  show(event: RunEvent): RunEvent | undefined {
    const sight = this.sightAt(event)
    if (sight === ALL) return event
    if (sight === null) return undefined
    if (this.sees === 'all') return event
    if (this.sees === 'fields') return sight.types?.has('field') === false ? undefined : event
    if (event.type === 'live') return this.liveThrough(sight, event)
    const shown = sight.isCumulative ? this.whole(event) : event
    return sight.types === null || sight.types.has(event.type) ? shown : undefined
  }

  private sightAt({ runId, parentId, path }: Place): Sight | null {
    const known = this.known.get(runId)
    if (known !== undefined) return known
    // Nobody delegated a run at the root: no row has to be read to know that it is another one.
    return path.length < 2 ? this.learn(runId, null) : this.sightOf(runId, parentId)
  }

  private sightOf(turnId: Id, parentId: Id | null): Sight | null {
    const known = this.known.get(turnId)
    if (known !== undefined) return known
    const host = parentId ?? this.tree.link(turnId)?.hostTurnId ?? null
    const above = host === null ? null : this.sightOf(host, null)
    return this.learn(turnId, above === null ? null : this.through(above, turnId))
  }

  private learn(turnId: Id, sight: Sight | null): Sight | null {
    this.known.set(turnId, sight)
    return sight
  }

  /** The events that a host forwards, out of those it receives. */
  private through(above: Sight, turnId: Id): Sight {
    const conversationId = this.tree.turn(turnId)?.conversationId
    const conversation = conversationId === undefined ? undefined : this.tree.conversation(conversationId)
    const forward = conversation === undefined ? null : forwardOf(conversation)
    if (forward === null) return above
    const types = forward.types?.filter((type) => above.types?.has(type) ?? true)
    return {
      types: types === undefined ? above.types : new Set(types),
      isCumulative: above.isCumulative || forward.cumulative,
    }
  }

  private whole(event: RunEvent): RunEvent {
    const nodeId = event.nodeId ?? ''
    switch (event.type) {
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-input-delta':
        return this.grown(nodeId, event)
      case 'reset':
      case 'message':
        this.said.delete(nodeId)
        return event
      default:
        return event
    }
  }

  /** Leaves out what a host forwards no deltas of. Later deltas that show the whole text continue it. */
  private liveThrough(
    { types, isCumulative }: Sight,
    event: Extract<LiveEvent, { type: 'live' }>,
  ): RunEvent | undefined {
    const has = (type: LiveEvent['type']) => types?.has(type) !== false
    if (!has('text-delta') && !has('reasoning-delta') && !has('tool-input-delta')) return undefined
    const { text, reasoning, calls } = event
    if (isCumulative) {
      const streams = [['text-delta', text] as const, ['reasoning-delta', reasoning] as const]
      const inputs = calls.map((call) => [`tool-input-delta ${call.callId}`, call.text] as const)
      this.said.set(event.nodeId ?? '', new Map([...streams, ...inputs]))
    }
    return {
      ...event,
      text: has('text-delta') ? text : '',
      reasoning: has('reasoning-delta') ? reasoning : '',
      calls: has('tool-input-delta') ? calls : [],
    }
  }

  private grown(nodeId: Id, event: Extract<LiveEvent, { type: `${string}-delta` }>): RunEvent {
    const stream = event.type === 'tool-input-delta' ? `${event.type} ${event.callId}` : event.type
    const node = this.said.get(nodeId) ?? new Map<string, string>()
    const text = (node.get(stream) ?? '') + event.text
    this.said.set(nodeId, node.set(stream, text))
    return { ...event, text, cumulative: true }
  }
}

import type { Clock } from '../base/clock.ts'
import type { LiveEvent } from '../graph/event.ts'
import type { Store } from '../store/store.ts'
import type { Feeds } from './feeds.ts'

const EVERY_MS = 250

/** Shows readers in other processes what nodes of this one stream: one block per node, now and then, never per delta. */
export class BlockWriter {
  private readonly store: Store
  private readonly feeds: Feeds
  private readonly clock: Clock
  private readonly report: (error: unknown) => void
  private armed = false
  private cancel: () => void = () => undefined

  constructor(options: { store: Store; feeds: Feeds; clock: Clock; report: (error: unknown) => void }) {
    this.store = options.store
    this.feeds = options.feeds
    this.clock = options.clock
    this.report = options.report
  }

  /** Something is being streamed. */
  wake(): void {
    if (this.armed || !this.store.shared) return
    this.armed = true
    this.cancel = this.clock.at(
      this.clock.now() + EVERY_MS,
      () => {
        this.write().catch(this.report)
      },
      { ref: false },
    )
  }

  stop(): void {
    this.cancel()
  }

  private async write(): Promise<void> {
    this.armed = false
    for (const { nodeId, rootId, live } of [...this.feeds.unwritten()]) {
      const node = this.store.node(nodeId)
      if (node === undefined || node.epoch !== live.epoch || node.state !== 'running') continue
      live.written = live.events.length
      await this.store.commit({
        kind: 'stream',
        at: this.clock.now(),
        rootId,
        conversations: [],
        turns: [],
        nodes: [],
        edges: [],
        links: [],
        bodies: [],
        engines: [],
        dropEngines: [],
        blocks: [{ nodeId, rootId, epoch: live.epoch, events: merged(live.events) }],
        dropBlocks: [],
        events: [],
      })
      this.wake()
    }
  }
}

/** Deltas of one kind in a row become one. */
function merged(events: readonly LiveEvent[]): LiveEvent[] {
  const out: LiveEvent[] = []
  for (const event of events) {
    const last = out[out.length - 1]
    const isSame = last?.type === event.type && 'text' in event && 'text' in last && sameCall(last, event)
    if (isSame) out[out.length - 1] = { ...last, text: last.text + event.text } as LiveEvent
    else out.push(event)
  }
  return out
}

function sameCall(a: LiveEvent, b: LiveEvent): boolean {
  return a.type !== 'tool-input-delta' || (b.type === 'tool-input-delta' && a.callId === b.callId)
}

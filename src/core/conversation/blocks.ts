import type { Clock } from '../base/clock.ts'
import { emptyCommit } from '../graph/commit.ts'
import { nearTree, untilLoaded } from '../store/look.ts'
import type { Store } from '../store/store.ts'
import type { Feeds } from './feeds.ts'

const EVERY_MS = 250

/**
 * Publishes the streams of this process's nodes to readers in other processes: one block per node and interval, never
 * per delta.
 */
export class BlockWriter {
  private readonly store: Store
  private readonly feeds: Feeds
  private readonly clock: Clock
  private readonly report: (error: unknown) => void
  private armed = false
  private isStopped = false
  private cancel: () => void = () => undefined

  constructor(options: { store: Store; feeds: Feeds; clock: Clock; report: (error: unknown) => void }) {
    this.store = options.store
    this.feeds = options.feeds
    this.clock = options.clock
    this.report = options.report
    if (this.store.shared) this.feeds.onLive = () => this.wake()
  }

  /** Arms the timer while something is being streamed. */
  private wake(): void {
    if (this.armed || this.isStopped) return
    this.armed = true
    this.cancel = this.clock.at(
      this.clock.now() + EVERY_MS,
      () => {
        this.write()
          .catch(this.report)
          .finally(() => {
            if (this.feeds.isStreaming) this.wake()
          })
      },
      { ref: false },
    )
  }

  stop(): void {
    this.isStopped = true
    this.cancel()
  }

  private async write(): Promise<void> {
    this.armed = false
    for (const live of this.feeds.unwritten()) {
      const { id: nodeId, rootId, epoch } = live.node
      const tree = this.store.known?.(rootId) ?? (await nearTree(this.store, rootId))
      const node = await untilLoaded(() => tree.node(nodeId))
      if (node === undefined || node.epoch !== epoch || node.state !== 'running') continue
      const { events, mark } = live.unwritten(this.clock.now())
      await this.store.commit({
        ...emptyCommit('stream', this.clock.now(), rootId),
        blocks: [{ nodeId, rootId, epoch, events }],
      })
      live.wrote(mark)
    }
  }
}

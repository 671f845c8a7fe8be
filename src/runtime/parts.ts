import type { AgentRegistry } from '../agent/build/registry.ts'
import type { ExtensionCore } from '../agent/definition/extension.ts'
import type { Home } from '../agent/hooks/node-run.ts'
import { isLegateError, messageOf } from '../base/error.ts'
import type { NodeEnds, TurnEnds } from '../conversation/ends.ts'
import type { KindDefinition } from '../delegation/run/kind.ts'
import type { Layer } from '../grant/grant.ts'
import type { Logger } from '../tool/tool.ts'
import type { WaitingParts } from './lazy.ts'
import type { Models } from './resolve-agent.ts'

/** What a process has for all its nodes, as it was given. */
type Handed = Pick<
  Home,
  'ledger' | 'feeds' | 'logger' | 'budget' | 'attempts' | 'profiles' | 'compaction' | 'runtime' | 'files' | 'causeOf'
> &
  Pick<Home, 'tracer' | 'longTermMemory'>

export interface ExecutorParts extends Handed {
  readonly ends: TurnEnds
  readonly nodeEnds: NodeEnds
  readonly registry: AgentRegistry
  readonly kinds: ReadonlyMap<string, KindDefinition>
  readonly models: Models
  readonly runtimeLayer: readonly Layer[]
  /** For every agent, after its own. */
  readonly extensions: readonly ExtensionCore[]
}

/** Where a runtime tells what went wrong beside its runs: to the log, and to who waits for a run that cannot end any more. */
export class Reports {
  private readonly logger: Logger
  /** Asked for when it is needed: they report themselves. */
  private readonly parts: () => WaitingParts
  /** Each loss is told once: the store as null, a tree by its root. */
  private readonly lost: Set<unknown> = new Set()

  private fullUntil = 0

  constructor(logger: Logger, parts: () => WaitingParts) {
    this.logger = logger
    this.parts = parts
  }

  readonly tell = (error: unknown): void => {
    if (isLegateError(error, 'store_full') && !this.isNewlyFull()) return
    const isGone = isLegateError(error, 'store_gone')
    const loss = isGone || isLegateError(error, 'tampered') ? error : null
    const what = isGone ? null : loss?.details['rootId']
    if (this.lost.has(null) || (loss !== null && this.lost.has(what))) return
    this.logger.error(messageOf(error), { error })
    if (loss === null) return
    this.lost.add(what)
    import('./lazy.ts').then(({ endRuns }) => endRuns(loss, this.parts()), this.tell)
  }

  /** It is tried again and again until there is room: once a minute is enough. */
  private isNewlyFull(): boolean {
    const now = performance.now()
    if (now < this.fullUntil) return false
    this.fullUntil = now + MINUTE_MS
    return true
  }
}

const MINUTE_MS = 60_000

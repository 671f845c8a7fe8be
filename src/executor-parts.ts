import type { ExtensionCore } from './agent/hooks/extension.ts'
import type { Home } from './agent/node-run.ts'
import type { AgentRegistry } from './agent/registry.ts'
import type { NodeEnds } from './conversation/node-ends.ts'
import type { TurnEnds } from './conversation/turn-ends.ts'
import type { KindDefinition } from './delegation/kind.ts'
import type { Layer } from './grant/grant.ts'
import type { Models } from './models.ts'

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

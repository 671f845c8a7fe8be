import { type PlannerSettings, plannerIn } from '../planner/settings.ts'
import type { ExtensionCore } from './extension.ts'
import { HOOK_NAMES, type HookName } from './hooks.ts'

/** The extensions of an agent in their order, by the hooks they have. */
export class HookSet {
  /** How its tools are used; null where it is left to the model. */
  readonly planner: PlannerSettings | null
  private readonly byHook: ReadonlyMap<HookName, readonly ExtensionCore[]>

  constructor(extensions: readonly ExtensionCore[]) {
    const named = HOOK_NAMES.map((name) => {
      return [name, extensions.filter(({ hooks }) => hooks?.[name] !== undefined)] as const
    })
    this.planner = plannerIn(extensions)
    this.byHook = new Map(named.filter(([, having]) => having.length > 0))
  }

  of(name: HookName): readonly ExtensionCore[] {
    return this.byHook.get(name) ?? NONE
  }

  has(name: HookName): boolean {
    return this.byHook.has(name)
  }

  get isEmpty(): boolean {
    return this.byHook.size === 0 && this.planner === null
  }
}

const NONE: readonly ExtensionCore[] = []

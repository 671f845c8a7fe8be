import { DefinitionError } from '../../base/error.ts'
import type { Conversation } from '../../graph/rows.ts'
import type { Ledger } from '../../store/ledger.ts'
import type { AgentCore, Extension } from '../definition/agent.ts'
import { checkExtension, type ExtensionCore } from '../definition/extension.ts'
import { HOOK_NAMES, type HookName } from '../definition/hooks.ts'
import { type PlannerSettings, plannerIn } from '../definition/planner-settings.ts'

/** The extensions of an agent in their order, by the hooks they have. */
export class HookSet {
  /** How its tools are used; null where the model decides. */
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

/** The kinds of nodes that are a model call. */
export const MODEL_KINDS: readonly string[] = ['agent_message', 'character_message']

/** Records once that a run continues with changed code, inside its frozen grant. */
export async function noteChange(ledger: Ledger, conversation: Conversation, agent: AgentCore): Promise<void> {
  const { name, hash } = agent.identity.ref
  const { id, rootId } = conversation
  await ledger.commit({
    kind: 'note',
    rootId,
    plan: (draft) => {
      const row = draft.conversation(id)
      if (row.agent.hash === hash || row.activeTurnId === null) return
      const turn = draft.turn(row.activeTurnId)
      draft.event(turn, null, { type: 'definition-changed', agent: name, from: row.agent.hash, to: hash })
      draft.changeConversation(row, { agent: agent.identity.ref })
    },
  })
}

/**
 * Sorts extensions by the order of their hooks: as given, except for `before` and `after`. One that is given twice
 * counts once. Throws a DefinitionError for two of one name, a missing one, and a circle.
 */
export function sortExtensions(given: readonly ExtensionCore[], where: string): readonly ExtensionCore[] {
  const all = [...new Set(given)]
  const byName = new Map<string, ExtensionCore>()
  for (const extension of all) {
    if (byName.has(extension.name))
      refuse(`${where}: there are two extensions "${extension.name}". Rename one of them.`)
    byName.set(extension.name, extension)
  }
  for (const { name, requires = [] } of all) {
    const missing = requires.find((other) => !byName.has(other))
    if (missing !== undefined) refuse(`${where}: the extension "${name}" requires "${missing}". Use that one too.`)
  }
  return sorted(all, earlierThan(all), where)
}

/** For each name, those that must come earlier. */
function earlierThan(all: readonly ExtensionCore[]): ReadonlyMap<string, ReadonlySet<string>> {
  const earlier = new Map(all.map(({ name }) => [name, new Set<string>()]))
  for (const { name, before = [], after = [], requires = [] } of all) {
    for (const other of before) earlier.get(other)?.add(name)
    // An extension that asks to come before one that it requires gets its way.
    const required = requires.filter((other) => !before.includes(other))
    for (const other of [...after, ...required]) if (earlier.has(other)) earlier.get(name)?.add(other)
  }
  return earlier
}

function sorted(
  all: readonly ExtensionCore[],
  earlier: ReadonlyMap<string, ReadonlySet<string>>,
  where: string,
): readonly ExtensionCore[] {
  const waiting = [...all]
  const done: ExtensionCore[] = []
  const isFree = ({ name }: ExtensionCore) => waiting.every((other) => earlier.get(name)?.has(other.name) !== true)
  while (waiting.length > 0) {
    const next = waiting.findIndex(isFree)
    if (next < 0) {
      const names = waiting.map(({ name }) => name).join(', ')
      refuse(`${where}: these extensions want to come before each other: ${names}. Change "before" or "after".`)
    }
    done.push(...waiting.splice(next, 1))
  }
  return done
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}

/** Defines an extension and infers the types of its state and methods. Refuses here what could never work. */
export function extension<const Name extends string, Methods extends object = object, State = undefined>(
  definition: Extension<Name, Methods, State>,
): Extension<Name, Methods, State> {
  checkExtension(definition, 'extension()')
  return Object.freeze({ ...definition })
}

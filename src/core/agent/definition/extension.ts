import { DefinitionError } from '../../base/error.ts'
import { anything, code, listOf, nearest, oneOf, readOptions, text } from '../../base/options.ts'
import { DURABLE_EVENTS, LIVE_EVENTS } from '../../graph/event.ts'
import type { Id } from '../../graph/rows.ts'
import { HOOK_NAMES, type Hooks } from './hooks.ts'

/** The part of an extension that runs with an agent. */
export interface ExtensionCore<State = unknown> {
  /** Its name in events and in `requires`, `before` and `after` of others. */
  readonly name: string
  /** Extensions that must also be present, on the agent or the runtime. */
  readonly requires?: readonly string[]
  /** Extensions whose hooks run later than the hooks of this one, if they are present. */
  readonly before?: readonly string[]
  /** Extensions whose hooks run sooner than the hooks of this one, if they are present. */
  readonly after?: readonly string[]
  /**
   * The effect of a hook that throws. `isolate`: the run continues as if it had returned nothing, with an event
   * `extension-error`. `fail`: the model call fails, and the run with it; the result of a tool is withheld. Default
   * `isolate`. A `beforeTool` that throws always refuses the call.
   */
  readonly onError?: 'isolate' | 'fail'
  /** Called for each run, before its first hook. */
  state?(run: RunOfState): State
  /** Your functions, by the moment at which they are called. */
  readonly hooks?: Hooks<State>
}

export interface RunOfState {
  readonly agent: string
  readonly runId: Id
  readonly conversationId: Id
  readonly path: readonly string[]
}

/** The name of the extension that holds a definition's own hooks. */
export const OWN_HOOKS = 'hooks'

const names = listOf(text, 'names of extensions')

const OPTIONS = {
  name: anything,
  requires: names,
  before: names,
  after: names,
  onError: oneOf('isolate', 'fail'),
  state: code,
  hooks: anything,
  methods: code,
}
const NAME = /^[a-zA-Z][a-zA-Z0-9_./-]{0,63}$/

/** Refuses an extension that could never work, so that a mistake is reported where it was made. */
export function checkExtension(given: unknown, where: string): void {
  if (typeof given !== 'object' || given === null) refuse(`${where}: an extension is an object, { name, hooks }.`)
  const extension = given as Partial<Record<keyof typeof OPTIONS, unknown>>
  const { name } = extension
  if (typeof name !== 'string' || !NAME.test(name)) {
    refuse(
      `${where}: ${JSON.stringify(name)} is not a name for an extension: begin with a letter; at most 64 characters.`,
    )
  }
  const place = `${where}: the extension "${name}"`
  if (name === OWN_HOOKS) refuse(`${place} has the name of an agent's own hooks. Give it another.`)
  readOptions(place, isPlain(extension) ? extension : known(extension), OPTIONS)
  if (extension.hooks !== undefined) checkHooks(extension.hooks, place)
}

/** Refuses unknown hooks: a misspelt one would never be called, and nobody would notice. */
export function checkHooks(hooks: unknown, where: string): void {
  if (typeof hooks !== 'object' || hooks === null) refuse(`${where}: hooks are an object: { beforeTool, ... }.`)
  const unknown = isPlain(hooks) ? Object.keys(hooks).find((key) => !isHook(key)) : undefined
  if (unknown !== undefined) refuse(`${where}: there is no hook "${unknown}". There are ${HOOK_NAMES.join(', ')}.`)
  for (const name of HOOK_NAMES) {
    const hook = Reflect.get(hooks, name) as unknown
    if (hook === undefined) continue
    if (name === 'onEvent') checkEventHooks(hook, where)
    else if (typeof hook !== 'function') refuse(`${where}: hooks.${name} must be a function.`)
  }
}

function checkEventHooks(hooks: unknown, where: string): void {
  if (typeof hooks !== 'object' || hooks === null) {
    refuse(`${where}: hooks.onEvent is an object, { 'text-delta': (event) => ... }.`)
  }
  for (const [type, hook] of Object.entries(hooks)) {
    if (!EVENTS.includes(type)) refuse(`${where}: ${unknownEvent(type)}`)
    if (hook !== undefined && typeof hook !== 'function') refuse(`${where}: hooks.onEvent[${type}] must be a function.`)
  }
}

const EVENTS: readonly string[] = [...DURABLE_EVENTS, ...LIVE_EVENTS, '*']

function unknownEvent(type: string): string {
  const meant = nearest(type, EVENTS)
  const hint = meant === undefined ? `There are ${EVENTS.join(', ')}.` : `Did you mean "${meant}"?`
  return `hooks.onEvent: there is no event "${type}". ${hint}`
}

/** Picks the known options, because an instance of a class may have more. */
function known(extension: object): Partial<Record<keyof typeof OPTIONS, unknown>> {
  return Object.fromEntries(Object.keys(OPTIONS).map((key) => [key, Reflect.get(extension, key)]))
}

/** An instance of a class may hold more than hooks. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function isHook(key: string): boolean {
  return (HOOK_NAMES as readonly string[]).includes(key)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}

import type { Client, JSONRPCMessage, StandardSchemaV1, Transport } from '@modelcontextprotocol/client'
import { ToolError } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import type { CheckedSchema } from '../../base/schema/schema.ts'
import type { Secrets } from '../../base/secrets/secrets.ts'
import { matchName } from '../../grant/match.ts'
import { isWithin, type ToolLimit } from '../../tool/source.ts'
import { guardedSchema } from './guarded-schema.ts'
import { MOST_PAGES, MOST_TOOLS } from './options.ts'
import { headerFault } from './parameter-headers.ts'
import { shownLine, shownText } from './server.ts'

/** A tool that a server listed, checked. */
export interface ListedTool {
  /** The server's own name of the tool. */
  readonly name: string
  /** The name that a model uses, after the name of the source. */
  readonly shownAs: string
  readonly description: string
  readonly input: CheckedSchema
  /** Unchanged from the server. */
  readonly inputSchema: object
  /** A hash of its description and schema, unchanged from the server. */
  readonly version: string
}

export interface ListedTools {
  readonly tools: readonly ListedTool[]
  /** The tools that were left out, and why. */
  readonly warnings: readonly string[]
}

export interface ListOptions {
  readonly limit: ToolLimit
  readonly secrets: Secrets
  /** The length of the source's name. */
  readonly room: number
  /** Names of our own tools for this server. */
  readonly taken: ReadonlySet<string>
  /** Whether parameters may be asked for as headers. */
  readonly isHttp: boolean
}

/** Reads the tools from any answer of a server. Leaves out the unusable ones, with the reason. */
export function readServerTools(given: readonly unknown[], options: ListOptions): ListedTools {
  const warnings: string[] = []
  const found = new Map<string, Record<string, unknown>>()
  for (const item of given) {
    const name = nameOf(item)
    if (name === undefined) warnings.push('a tool without a name was left out')
    else if (name.length > LONGEST_NAME) warnings.push(`the tool "${name.slice(0, 64)}..." was left out: ${TOO_LONG}`)
    else if (found.has(name)) warnings.push(`two tools are named ${JSON.stringify(name)}: the second was left out`)
    else found.set(name, item as Record<string, unknown>)
  }
  const { room, secrets, taken, limit } = options
  const names = toolNames([...found.keys()], { room, shown: (name) => secrets.clean(name), taken })
  const wanted = [...found].filter(([name]) => isWithin(limit, { name, shownAs: names.get(name) ?? name }))
  const tools = wanted.slice(0, MOST_TOOLS).flatMap(([name, item]) => {
    const shownAs = names.get(name)
    const input = shownAs === undefined ? 'another tool has its name' : inputOf(item, options)
    if (shownAs !== undefined && typeof input !== 'string') return [listed(item, { name, shownAs, input, options })]
    warnings.push(`the tool ${JSON.stringify(name)} was left out: ${input}`)
    return []
  })
  const shadowed = tools
    .filter(({ name }) => taken.has(name))
    .map(({ name }) => `its own tool ${name} is used instead of ours`)
  const told = [...warnings, ...shadowed, ...notThere(wanted, options)].slice(0, MOST_WARNINGS)
  return { tools, warnings: told.map((warning) => shownLine(options.secrets.clean(warning))) }
}

const MOST_WARNINGS = 20
const LONGEST_NAME = 256
const TOO_LONG = `its name has more than ${LONGEST_NAME} characters`

function listed(
  item: Record<string, unknown>,
  {
    name,
    shownAs,
    input,
    options,
  }: { readonly name: string; readonly shownAs: string; readonly input: CheckedSchema; readonly options: ListOptions },
): ListedTool {
  const said = typeof item['description'] === 'string' ? item['description'] : ''
  const about = toJson([name, said, item['title'] ?? null, item['inputSchema'] ?? null])
  return {
    name,
    shownAs,
    description: shownText(options.secrets.clean(said)) || shownAs,
    input,
    inputSchema: item['inputSchema'] as object,
    version: sha256(canonicalJson(about.ok ? about.value : (name as Json))).slice(0, 16),
  }
}

function nameOf(item: unknown): string | undefined {
  if (typeof item !== 'object' || item === null) return undefined
  const name: unknown = Reflect.get(item, 'name')
  return typeof name === 'string' && name !== '' ? name : undefined
}

/** Our client does not support tasks of the protocol. */
function isTaskOnly({ execution }: { readonly execution?: unknown }): boolean {
  if (typeof execution !== 'object' || execution === null) return false
  return Reflect.get(execution, 'taskSupport') === 'required'
}

/** The schema as it is checked, or the reason why the tool cannot be used. */
function inputOf(item: Record<string, unknown>, { secrets, isHttp }: ListOptions): CheckedSchema | string {
  if (isTaskOnly(item)) return 'it runs as a task only'
  return (isHttp ? headerFault(item['inputSchema']) : undefined) ?? guardedSchema(item['inputSchema'], secrets)
}

function notThere(wanted: readonly (readonly [string, unknown])[], { limit, taken }: ListOptions): string[] {
  const there = [...wanted.map(([name]) => name), ...taken]
  const known = new Set(there)
  const isThere = (name: string) => known.has(name) || (name.includes('*') && there.some((one) => matchName(name, one)))
  return (limit.availableTools ?? [])
    .filter((name) => !isThere(name) && isWithin(limit, { name, shownAs: name }))
    .map((name) => `it has no tool ${JSON.stringify(name)}`)
}

export interface ServerToolList {
  /** Unchecked, as the server sent them. */
  readonly tools: readonly unknown[]
  /** How long the list stays valid, by the server's word; null where it does not tell. */
  readonly ttlMs: number | null
  /** Tells that the server has more tools than these; null where it has not. */
  readonly cut: string | null
}

/** Lists the tools of a server, page by page. Stops at a cursor that repeats, and at a bound on their number. */
export async function listTools(client: Client, timeout: number): Promise<ServerToolList> {
  if (client.getServerCapabilities()?.tools === undefined) return { tools: [], ttlMs: null, cut: null }
  const tools: unknown[] = []
  const seen = new Set<unknown>()
  let ttlMs: number | null = null
  let cursor: unknown
  let isOver = false
  for (let page = 0; page < MOST_PAGES && tools.length <= MOST_TOOLS && !isOver; page++) {
    const params = typeof cursor === 'string' ? { cursor } : {}
    const result = await client.request({ method: 'tools/list', params }, ANYTHING, { timeout })
    const listed = givenTools(result)
    if (!Array.isArray(listed)) throw new ToolError('tool', 'it gave no list of tools')
    tools.push(...listed.slice(0, MOST_TOOLS + 1))
    if (page === 0) ttlMs = timeIn(result['ttlMs'])
    cursor = result['nextCursor']
    isOver = typeof cursor !== 'string' || seen.has(cursor)
    seen.add(cursor)
  }
  if (tools.length > MOST_TOOLS) return { tools, ttlMs, cut: TOO_MANY_TOOLS }
  return { tools, ttlMs, cut: isOver ? null : TOO_MANY_PAGES }
}

const TOO_MANY_TOOLS = `it has more than ${MOST_TOOLS} tools: those after the first ${MOST_TOOLS} were left out`
const TOO_MANY_PAGES = `its list of tools has more than ${MOST_PAGES} pages: the tools after them were left out`

/** Accepts anything: the library would refuse a whole list for one wrong tool. */
const ANYTHING: StandardSchemaV1<unknown, Readonly<Record<string, unknown>>> = {
  '~standard': {
    version: 1,
    vendor: 'legate',
    validate: (value: unknown) => ({ value: value as Readonly<Record<string, unknown>> }),
  },
}

/** Ignores 0, which would mean a list before every step: the server announces changes. */
function timeIn(value: unknown): number | null {
  return typeof value === 'number' && value > 0 ? value : null
}

/** Holds the server's tools beside the part that the library sees. */
const GIVEN: unique symbol = Symbol('tools')

/**
 * Since 2026-07-28 the library refuses a whole list for one wrong tool. So it gets an empty list, and the server's
 * tools lie beside it: `givenTools`. Call it on a connected transport.
 */
export function setToolsAside(transport: Transport): void {
  const lists = new Set<unknown>()
  const send = transport.send.bind(transport)
  const hear = transport.onmessage
  transport.send = (message, options) => {
    if ('method' in message && message.method === 'tools/list' && 'id' in message) lists.add(message.id)
    return send(message, options)
  }
  transport.onmessage = (message, extra) => {
    const isList = 'id' in message && !('method' in message) && lists.delete(message.id)
    hear?.(isList ? withoutTools(message) : message, extra)
  }
}

/** The tools in an answer to `tools/list`, unchecked. */
function givenTools(result: object): unknown {
  return Reflect.get(result, GIVEN) ?? Reflect.get(result, 'tools')
}

/** Leaves a value that is not a list, so that the library refuses it. */
function withoutTools<T extends JSONRPCMessage>(message: T): T {
  const result: unknown = 'result' in message ? message.result : undefined
  if (typeof result !== 'object' || result === null) return message
  const tools: unknown = Reflect.get(result, 'tools')
  return Array.isArray(tools) ? { ...message, result: { ...result, tools: [], [GIVEN]: tools } } : message
}

const LONGEST = 64
/** Digits of a digest: the second number applies where two digests are equal. */
const DIGITS = [6, 14]

export interface NameOptions {
  /** The length of the source's name. */
  readonly room: number
  /** Removes the parts of a name that nobody may see. */
  readonly shown: (name: string) => string
  /** Names reserved for tools that really have them. */
  readonly taken?: Iterable<string>
}

/**
 * Finds names that every provider takes for the tools of a server. A valid name stays, whatever other tools exist.
 * Other names get `_` for invalid characters and are cut to length; a cut name, or one that another tool has, gets a
 * digest. All names differ; a tool without a possible name is left out.
 */
export function toolNames(
  names: readonly string[],
  { room, shown, taken = [] }: NameOptions,
): ReadonlyMap<string, string> {
  const most = Math.max(20, LONGEST - room)
  const plain = new Map(names.map((name) => [name, shown(name).replace(/[^a-zA-Z0-9_-]+/g, '_')]))
  const isFine = (name: string) => name !== '' && name.length <= most
  const found = new Map(names.filter((name) => plain.get(name) === name && isFine(name)).map((name) => [name, name]))
  const used = new Set([...taken, ...found.values()])
  const candidates = [
    (name: string) => plain.get(name) ?? '',
    ...DIGITS.map((digits) => (name: string) => {
      return `${(plain.get(name) ?? '').slice(0, most - digits - 1)}_${sha256(name).slice(0, digits)}`
    }),
  ]
  for (const candidate of candidates) {
    const left = [...plain.keys()].filter((name) => !found.has(name)).map((name) => [name, candidate(name)] as const)
    const counts = new Map<string, number>()
    for (const [, made] of left) counts.set(made, (counts.get(made) ?? 0) + 1)
    for (const [name, made] of left) {
      if (isFine(made) && counts.get(made) === 1 && !used.has(made)) found.set(name, made)
    }
    for (const [, made] of left) used.add(made)
  }
  return found
}

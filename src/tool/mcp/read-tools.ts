import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import type { CheckedSchema } from '../../base/schema.ts'
import type { Secrets } from '../../base/secrets.ts'
import { matchName } from '../../grant/match.ts'
import { isWithin, type ToolLimit } from '../source/limited-source.ts'
import { guardedSchema } from './guarded-schema.ts'
import { MOST_TOOLS } from './limits.ts'
import { shownLine, shownText } from './shown-text.ts'
import { toolNames } from './tool-names.ts'

/** A tool as a server tells of it, checked. */
export interface ListedTool {
  /** What the server calls it. */
  readonly name: string
  /** What a model calls it, after the name of the source. */
  readonly shownAs: string
  readonly description: string
  readonly input: CheckedSchema
  /** As the server gave it. */
  readonly inputSchema: object
  /** Of its description and schema as the server gave them. */
  readonly version: string
}

export interface ListedTools {
  readonly tools: readonly ListedTool[]
  /** What was left out, and why. */
  readonly warnings: readonly string[]
}

export interface ListOptions {
  readonly limit: ToolLimit
  readonly secrets: Secrets
  /** Characters that the name of the source takes. */
  readonly room: number
  /** Names of the tools that we have for it beside its own. */
  readonly taken: ReadonlySet<string>
}

/** The tools in what a server answered: whatever that is. What cannot be used is left out, with the reason. */
export function readTools(given: readonly unknown[], options: ListOptions): ListedTools {
  const warnings: string[] = []
  const found = new Map<string, Record<string, unknown>>()
  for (const item of given) {
    const name = nameOf(item)
    if (name === undefined) warnings.push('a tool without a name was left out')
    else if (found.has(name)) warnings.push(`two tools are named ${JSON.stringify(name)}: the second was left out`)
    else found.set(name, item as Record<string, unknown>)
  }
  const { room, secrets, taken, limit } = options
  const names = toolNames([...found.keys()], { room, shown: (name) => secrets.clean(name), taken })
  const wanted = [...found].filter(([name]) => isWithin(limit, { name, shownAs: names.get(name) ?? name }))
  const kept = wanted.slice(0, MOST_TOOLS)
  if (kept.length < wanted.length)
    warnings.push(`it has ${wanted.length} tools: those after the first ${MOST_TOOLS} were left out`)
  const tools = kept.flatMap(([name, item]) => {
    const shownAs = names.get(name)
    const input = shownAs === undefined ? 'another tool has its name' : inputOf(item, secrets)
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

interface Named {
  readonly name: string
  readonly shownAs: string
  readonly input: CheckedSchema
  readonly options: ListOptions
}

function listed(item: Record<string, unknown>, { name, shownAs, input, options }: Named): ListedTool {
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
  return typeof name === 'string' && name !== '' && name.length <= LONGEST_NAME ? name : undefined
}

/** Tasks of the protocol are not spoken here. */
function isTaskOnly({ execution }: { readonly execution?: unknown }): boolean {
  if (typeof execution !== 'object' || execution === null) return false
  return Reflect.get(execution, 'taskSupport') === 'required'
}

/** As it is checked, or why the tool cannot be used. */
function inputOf(item: Record<string, unknown>, secrets: Secrets): CheckedSchema | string {
  return isTaskOnly(item) ? 'it runs as a task only' : guardedSchema(item['inputSchema'], secrets)
}

function notThere(wanted: readonly (readonly [string, unknown])[], { limit, taken }: ListOptions): string[] {
  const there = [...wanted.map(([name]) => name), ...taken]
  const known = new Set(there)
  const isThere = (name: string) => known.has(name) || (name.includes('*') && there.some((one) => matchName(name, one)))
  return (limit.availableTools ?? [])
    .filter((name) => !isThere(name) && isWithin(limit, { name, shownAs: name }))
    .map((name) => `it has no tool ${JSON.stringify(name)}`)
}

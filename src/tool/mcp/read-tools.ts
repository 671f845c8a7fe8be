import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import type { CheckedSchema } from '../../base/schema.ts'
import { guardedSchema } from './guarded-schema.ts'
import { MOST_DESCRIPTION, MOST_TOOLS } from './limits.ts'
import type { Redaction } from './secrets.ts'
import { toolNames } from './tool-names.ts'

/** A tool as a server tells of it, checked. */
export interface ListedTool {
  /** What the server calls it. */
  readonly name: string
  /** What a model calls it, after the name of the source. */
  readonly shownAs: string
  readonly description: string
  readonly input: CheckedSchema
  /** Of its description and schema as the server gave them. */
  readonly version: string
}

export interface ListedTools {
  readonly tools: readonly ListedTool[]
  /** What was left out, and why. */
  readonly warnings: readonly string[]
}

export interface ListOptions {
  readonly availableTools: readonly string[]
  readonly redaction: Redaction
  /** Characters that the name of the source takes. */
  readonly room: number
}

/** The tools in what a server answered: whatever that is. What cannot be used is left out, with the reason. */
export function readTools(given: readonly unknown[], options: ListOptions): ListedTools {
  const warnings: string[] = []
  const found = new Map<string, Record<string, unknown>>()
  for (const item of given) {
    const name = nameOf(item)
    if (name === undefined) warnings.push('a tool without a name was left out')
    else if (found.has(name)) warnings.push(`two tools are named ${JSON.stringify(name)}: the second was left out`)
    else if (isWanted(name, options)) found.set(name, item as Record<string, unknown>)
  }
  const kept = [...found].slice(0, MOST_TOOLS)
  if (kept.length < found.size)
    warnings.push(`it has ${found.size} tools: those after the first ${MOST_TOOLS} were left out`)
  const names = toolNames([...found.keys()], options.room)
  const tools = kept.flatMap(([name, item]) => {
    const input = isTaskOnly(item) ? 'it runs as a task only' : guardedSchema(item['inputSchema'])
    if (typeof input !== 'string') return [listed(item, { name, shownAs: names.get(name) ?? name, input, options })]
    warnings.push(`the tool ${JSON.stringify(name)} was left out: ${input}`)
    return []
  })
  return { tools, warnings: [...warnings, ...notThere(found, options)].slice(0, MOST_WARNINGS) }
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
  const about = toJson([name, said, item['title'] ?? null, input.jsonSchema])
  return {
    name,
    shownAs,
    description: shownText(options.redaction.clean(said)) || name,
    input,
    version: sha256(canonicalJson(about.ok ? about.value : (name as Json))).slice(0, 16),
  }
}

/** Without what people cannot see and models can read, and not endless. */
export function shownText(text: string): string {
  const visible = text
    .replace(/[\u{E0000}-\u{E007F}\u200B-\u200F\u202A-\u202E\u2060-\u2064\uFEFF]/gu, '')
    .toWellFormed()
  return visible.length <= MOST_DESCRIPTION ? visible : `${visible.slice(0, MOST_DESCRIPTION).toWellFormed()} [cut]`
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

function isWanted(name: string, { availableTools }: ListOptions): boolean {
  return availableTools.length === 0 || availableTools.includes(name)
}

function notThere(found: ReadonlyMap<string, unknown>, { availableTools }: ListOptions): string[] {
  return availableTools.filter((name) => !found.has(name)).map((name) => `it has no tool ${JSON.stringify(name)}`)
}

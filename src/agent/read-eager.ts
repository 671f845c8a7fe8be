import { DefinitionError, messageOf } from '../base/error.ts'
import type { CheckedSchema } from '../base/schema.ts'
import { hasField } from '../output/has-field.ts'
import { type PathPattern, readPath } from '../output/path-pattern.ts'
import { type EagerCore, isAgent } from './agent.ts'
import { readConfig } from './read-subagents.ts'

/** What a subagent of a host may be told and an item's may not: it has no tool and no session. */
const FOREIGN = ['description', 'toolName', 'group', 'presets', 'memory', 'session', 'hooks', 'promoteAfterMs']

/** The children that items of the answer start, by path; null where there are none. */
export function readEager(
  eager: object | undefined,
  output: CheckedSchema | null,
  where: string,
): ReadonlyMap<string, EagerCore> | null {
  if (eager === undefined) return null
  if (typeof eager !== 'object' || eager === null) refuse(`${where}: eager is an object: { 'tasks[*]': { agent } }.`)
  const entries = Object.entries(eager).filter(([, value]) => value !== undefined)
  if (entries.length === 0) return null
  if (output === null) refuse(`${where}: eager starts children for items of the answer: give the agent an output.`)
  return new Map(entries.map(([path, value]) => [path, readOne(value, path, { output, where })]))
}

function readOne(value: unknown, path: string, { output, where }: { output: CheckedSchema; where: string }): EagerCore {
  const place = `${where}, eager[${JSON.stringify(path)}]`
  const { input, ...config } = (
    isSource(value) || typeof value !== 'object' || value === null ? { agent: value } : value
  ) as { readonly input?: unknown; readonly agent?: unknown }
  const foreign = Object.keys(config).find((key) => FOREIGN.includes(key))
  if (foreign !== undefined) refuse(`${place} has no "${foreign}": that is for subagents that a model calls.`)
  if (input !== undefined && typeof input !== 'function') refuse(`${place}.input is a function of the item.`)
  const pattern = patternOf(path, place)
  if (!hasField(output.jsonSchema, pattern)) refuse(`${place}: the output schema has no such field.`)
  return { pattern, config: readConfig(config, place), input: input as EagerCore['input'] }
}

function patternOf(path: string, place: string): PathPattern {
  try {
    return readPath(path)
  } catch (error) {
    return refuse(`${place}: ${messageOf(error)}`)
  }
}

function isSource(value: unknown): boolean {
  return isAgent(value) || typeof value === 'function'
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}

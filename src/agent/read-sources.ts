import { DefinitionError } from '../base/error.ts'
import { isToolSource, SOURCE_SEPARATOR, type ToolSource } from '../tool/source/source.ts'
import type { Sources } from './agent.ts'

const NONE: ReadonlyMap<string, ToolSource> = new Map()

/** The sources of a definition by their names. */
export function readSources(sources: Sources | undefined, where: string): ReadonlyMap<string, ToolSource> {
  if (sources === undefined) return NONE
  if (typeof sources !== 'object' || sources === null || Array.isArray(sources)) {
    refuse(`${where}: sources are an object, { name: mcpServer({ ... }) }.`)
  }
  for (const [name, source] of Object.entries(sources)) {
    // Where it ends must be seen in the names of its tools.
    const isName = /^[a-zA-Z0-9](?:[a-zA-Z0-9_-]{0,38}[a-zA-Z0-9-])?$/.test(name) && !name.includes(SOURCE_SEPARATOR)
    if (!isName) {
      refuse(`${where}: "${name}" is no name for a source: letters, digits, - and single _ inside, at most 40.`)
    }
    if (!isToolSource(source)) {
      refuse(`${where}: sources.${name} is none: make it with mcpServer({ ... }) or builtinToolkit(name).`)
    }
  }
  return new Map(Object.entries(sources))
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}

import type { Layer } from '../../grant/grant.ts'

/** The restrictions of an agent's file and mode, which hold whatever code changes about the agent later. */
export interface FileLayers {
  /** The list of tools; null where the file names none. */
  readonly tools: Layer | null
  /** Further layers that bind the agent itself. */
  readonly use: readonly Layer[]
  /** Further layers that bind its children. */
  readonly delegate: readonly Layer[]
}

interface Holder {
  readonly fileLayers: FileLayers | null
}

interface Kit {
  readonly tools: ReadonlyMap<string, unknown>
  readonly sources: ReadonlyMap<string, unknown>
}

/** The layers of its file that bind the agent itself. */
export function fileUseLayers({ fileLayers }: Holder): readonly Layer[] {
  return fileLayers === null ? NONE : [...toolsLayer(fileLayers), ...fileLayers.use]
}

/** The layers of its file that bind the agent's children. */
export function fileDelegateLayers({ fileLayers }: Holder): readonly Layer[] {
  return fileLayers === null ? NONE : [...toolsLayer(fileLayers), ...fileLayers.delegate]
}

/** Adds tools that code gives the agent to the list of its file. Tools that the file denies stay denied. */
export function withToolsOfCode(layers: FileLayers | null, kit: Kit): FileLayers | null {
  if (layers === null || layers.tools === null) return layers
  const { tools } = layers
  const added = [...kit.tools.keys(), ...[...kit.sources.keys()].map((source) => `${source}__*`)]
  return { ...layers, tools: { ...tools, allow: [...tools.allow, ...added.map((name) => `tool:${name}`)] } }
}

function toolsLayer({ tools }: FileLayers): readonly Layer[] {
  return tools === null ? NONE : [tools]
}

const NONE: readonly Layer[] = Object.freeze([])

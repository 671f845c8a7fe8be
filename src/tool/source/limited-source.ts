import { sha256 } from '../../base/hash.ts'
import { matchName } from '../../grant/match.ts'
import type { OpenSource, ToolSource } from './source.ts'

/** Which tools of a source an agent gets. Names are those that the source itself uses. */
export interface ToolLimit {
  /** Only these; `*` stands for any text. Null: all of them. An empty list: none. */
  readonly availableTools: readonly string[] | null
  /** None of these; `*` stands for any text. Stronger than `availableTools`. */
  readonly excludedTools: readonly string[]
}

/** The name that a tool has at its source, and the one that a model sees behind the name of the source. */
interface NamedTool {
  readonly name: string
  readonly shownAs: string
}

export function isWithin({ availableTools, excludedTools }: ToolLimit, { name, shownAs }: NamedTool): boolean {
  const isNamed = (pattern: string) => matchName(pattern, name) || matchName(pattern, shownAs)
  return !excludedTools.some(isNamed) && (availableTools === null || availableTools.some(isNamed))
}

/** The same source with fewer tools. */
export function limitedSource(source: ToolSource, limit: ToolLimit): ToolSource {
  if (limit.availableTools === null && limit.excludedTools.length === 0) return source
  const tools = source.tools === null ? null : Object.entries(source.tools)
  const kept = tools?.filter(([name]) => isWithin(limit, { name, shownAs: name }))
  return Object.freeze({
    ...source,
    // Those that are worked out each time they are asked for.
    get needs() {
      return source.needs
    },
    get key() {
      return `${source.key} ${sha256(JSON.stringify([limit.availableTools, limit.excludedTools]))}`
    },
    tools: kept === undefined ? null : Object.fromEntries(kept),
    open: async (place) => limitedTools(await source.open(place), limit),
  } satisfies ToolSource)
}

function limitedTools(opened: OpenSource, limit: ToolLimit): OpenSource {
  return {
    get tools() {
      return new Map([...opened.tools].filter(([shownAs, { name = shownAs }]) => isWithin(limit, { name, shownAs })))
    },
    get notes() {
      return opened.notes
    },
    get warnings() {
      return opened.warnings
    },
    ready: () => opened.ready(),
    close: () => opened.close(),
  }
}

import { sha256 } from '../base/hash.ts'
import type { Json } from '../base/json.ts'
import { matchName } from '../grant/match.ts'
import type { Request } from '../grant/request.ts'
import type { Logger, Tool } from './tool.ts'

/**
 * Where tools come from: a toolkit that is there at once, or something that is started before an agent's first step, such
 * as an MCP server. Given to an agent under a name: `sources: { github: mcpServer({ ... }) }`.
 */
export interface ToolSource {
  /** What it is, for people who are asked and for the agent's hash: no secrets. */
  readonly about: Json
  /** The tools of one that need not be started, under their own names; null for one that must be. */
  readonly tools: Readonly<Record<string, Tool>> | null
  /** What starting it does, such as `exec:npx -y some-server`: each is decided before it is started. */
  readonly needs: readonly Request[]
  /** Does a run fail when it cannot be started? Else it goes on without these tools, and says so. */
  readonly required: boolean
  /** Who shares what was started: a run and all below it, each conversation for itself, or everything in the runtime. */
  readonly scope: SourceScope
  /** The same for two that may be one: they are shared within the scope. */
  readonly key: string
  /** Names of secrets that it needs and that are not there. */
  missing(): readonly string[]
  /** Starts it. Rejects with the reason. Not called where `tools` are there. */
  open(place: SourcePlace): Promise<OpenSource>
  readonly [sourceMark]: true
}

export const SOURCE_SCOPES = ['run', 'conversation', 'runtime'] as const
export type SourceScope = (typeof SOURCE_SCOPES)[number]

export interface SourcePlace {
  /** What it is called by those who use it. */
  readonly name: string
  readonly logger: Logger
  readonly signal: AbortSignal
  /** What was decided before it was started: it does this and nothing else. */
  readonly decided: readonly Request[]
}

/** One that was started. */
export interface OpenSource {
  /** By the names they have there; the agent's model sees `<source>__<name>`. */
  readonly tools: ReadonlyMap<string, SourceTool>
  /** What the model is told of how to use them; empty for nothing. */
  readonly notes: string
  /** What people should know, such as tools that were left out. */
  readonly warnings: readonly string[]
  /** Values it was given that no recording may keep. Left out: none are known. */
  readonly secretValues?: readonly string[]
  /** Makes sure that it runs and that `tools` are what it has now. Rejects with the reason when it does not. */
  ready(): Promise<void>
  /** Ends it and everything it started. Never rejects. */
  close(): Promise<void>
}

export interface SourceTool {
  readonly tool: Tool
  /** What the source itself calls it, where that is not its name here. */
  readonly name?: string
  /** Changes with what a model or a person is told of it: what was allowed before it changed is asked for again. */
  readonly version: string
}

export const sourceMark: unique symbol = Symbol.for('legate.source') as never

export function isToolSource(value: unknown): value is ToolSource {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, sourceMark)
}

/** Between the name of a source and the name a tool has there. */
export const SOURCE_SEPARATOR = '__'

/** Tools that are there at once, as a source: one name for all of them. */
export function toolkitSource(about: Json, tools: Readonly<Record<string, Tool>>): ToolSource {
  return Object.freeze({ ...source(about), tools })
}

/** One that is asked for and that there is not: what uses it is told so. */
export function absentSource(about: Json, reason: string, required: boolean): ToolSource {
  return Object.freeze({ ...source(about), required, open: () => Promise.reject(new Error(reason)) })
}

function source(about: Json): ToolSource {
  return {
    about,
    tools: null,
    needs: [],
    required: false,
    scope: 'run',
    key: `toolkit ${JSON.stringify(about)}`,
    missing: () => [],
    open: () => Promise.reject(new Error('this source has its tools at once')),
    [sourceMark]: true,
  }
}

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

/** As a name of a source may be: `Context7 Docs` is `context7_docs`. */
export function sourceName(given: string): string {
  if (/^[a-zA-Z0-9][a-zA-Z0-9-]*(?:_[a-zA-Z0-9-]+)*$/.test(given) && given.length <= LONGEST) return given
  const plain = given
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '_')
    .replace(/^[_-]+|_+$/g, '')
  return plain.slice(0, LONGEST).replace(/_+$/, '') || 'extension'
}

const LONGEST = 40

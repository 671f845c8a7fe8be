import type { Client, StandardSchemaV1 } from '@modelcontextprotocol/client'
import { ToolError } from '../../base/error.ts'
import { givenTools } from './given-tools.ts'
import { MOST_PAGES, MOST_TOOLS } from './limits.ts'

export interface ToolList {
  /** As the server gave them: anything. */
  readonly tools: readonly unknown[]
  /** How long it stays true, as the server says; null where it says nothing. */
  readonly ttlMs: number | null
}

/** The tools of a server, page by page. Ends at a cursor that comes again, and where there are more than anybody wants. */
export async function listTools(client: Client, timeout: number): Promise<ToolList> {
  if (client.getServerCapabilities()?.tools === undefined) return { tools: [], ttlMs: null }
  const tools: unknown[] = []
  const seen = new Set<unknown>()
  let ttlMs: number | null = null
  let cursor: unknown
  for (let page = 0; page < MOST_PAGES && tools.length <= MOST_TOOLS; page++) {
    const params = typeof cursor === 'string' ? { cursor } : {}
    const result = await client.request({ method: 'tools/list', params }, ANYTHING, { timeout })
    const listed = givenTools(result)
    if (!Array.isArray(listed)) throw new ToolError('tool', 'it gave no list of tools')
    tools.push(...listed.slice(0, MOST_TOOLS + 1))
    if (page === 0) ttlMs = timeIn(result['ttlMs'])
    cursor = result['nextCursor']
    if (typeof cursor !== 'string' || seen.has(cursor)) break
    seen.add(cursor)
  }
  return { tools, ttlMs }
}

/** The library would refuse a whole list for one tool that is wrong. */
const ANYTHING: StandardSchemaV1<unknown, Readonly<Record<string, unknown>>> = {
  '~standard': {
    version: 1,
    vendor: 'legate',
    validate: (value: unknown) => ({ value: value as Readonly<Record<string, unknown>> }),
  },
}

/** None is a time at which a list would be asked for before every step: changes are told. */
function timeIn(value: unknown): number | null {
  return typeof value === 'number' && value > 0 ? value : null
}

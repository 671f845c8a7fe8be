// Runs, transcripts and long results as resources. Foreign ids answer like unknown ones.

import { isLegateError, type Run } from '../../../index.ts'
import type { McpResource } from './offer.ts'
import type { Peer } from './peer.ts'

const LISTED_RUNS = 20
const PAGE_CHARS = 100_000

/** The documents that a caller may read. */
export function runResources({ runtime }: Peer): McpResource[] {
  if (!runtime.may('read')) return []
  return [
    {
      uri: 'legate://runs/{id}',
      name: 'run',
      description: 'A run: its state, its outcome, and what it delegated.',
      mimeType: 'application/json',
      read: (uri, { id = '' }) => found(async () => jsonPart(uri, await runtime.look(id))),
      list: async () => {
        const runs = await runtime.runs({ limit: LISTED_RUNS })
        return runs.map(({ runId, agent, title }) => ({ uri: `legate://runs/${runId}`, name: title ?? agent }))
      },
      watch: async ({ id = '' }, changed, signal) => watchRun(await runtime.attach(id), changed, signal),
    },
    {
      uri: 'legate://conversations/{id}/transcript',
      name: 'transcript',
      description: 'What was said in a conversation, the newest 50 turns.',
      mimeType: 'application/json',
      read: (uri, { id = '' }) =>
        found(async () => {
          const conversation = await runtime.conversation(id)
          return jsonPart(uri, (await conversation.transcriptPage({ limitTurns: 50 })).transcript)
        }),
    },
    {
      uri: 'legate://results/{id}',
      name: 'result',
      description: 'The beginning of what a node gave; more of it under /from/{place}.',
      mimeType: 'text/plain',
      read: (uri, { id = '' }) => readResult(runtime, uri, { id, from: '0' }),
    },
    {
      uri: 'legate://results/{id}/from/{place}',
      name: 'result-page',
      description: 'What a node gave, from a character on.',
      mimeType: 'text/plain',
      read: (uri, { id = '', place = '' }) => readResult(runtime, uri, { id, from: place }),
    },
  ]
}

/** Tells of everything that is recorded in a run, from now to its end. */
async function watchRun(run: Run, changed: () => void, signal: AbortSignal): Promise<void> {
  const events = run.events({ live: true })[Symbol.asyncIterator]()
  signal.addEventListener('abort', () => events.return?.().catch(() => undefined), { once: true })
  for (;;) {
    const { done, value } = await events.next()
    if (done === true || signal.aborted) return
    if (Number.isInteger(value.seq)) changed()
  }
}

function readResult(runtime: Peer['runtime'], uri: string, { id, from }: { id: string; from: string }) {
  return found(async () => {
    const { text } = await runtime.result(id)
    const start = /^\d{1,9}$/.test(from) ? Number(from) : text.length
    const end = start + PAGE_CHARS
    const next = end < text.length ? { _meta: { 'legate/next': `legate://results/${id}/from/${end}` } } : {}
    return [{ uri, mimeType: 'text/plain', text: text.slice(start, end), ...next }]
  })
}

function jsonPart(uri: string, value: unknown): object[] {
  return [{ uri, mimeType: 'application/json', text: JSON.stringify(value) }]
}

/** Undefined where the id is nobody's or another's. */
async function found(read: () => Promise<object[]>): Promise<object[] | undefined> {
  try {
    return await read()
  } catch (error) {
    if (isLegateError(error, 'not_found') || isLegateError(error, 'deleted')) return undefined
    throw error
  }
}

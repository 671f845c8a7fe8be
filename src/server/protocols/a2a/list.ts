import type { RunTree } from '../../../doors/rows.ts'
import { malformed } from './parts.ts'
import type { AgentTasks } from './tasks.ts'
import type { A2aTask } from './wire.ts'

/** Which tasks a peer wants. */
export interface TaskListQuery {
  /** Empty: of all contexts. */
  readonly contextId: string
  /** A state; empty: all. */
  readonly state: string
  readonly pageSize: number | undefined
  readonly pageToken: string
  readonly historyLength: number | undefined
  readonly includeArtifacts: boolean
  /** Only tasks whose status is newer; empty: all. */
  readonly after: string
}

export interface TaskPage {
  readonly tasks: readonly A2aTask[]
  readonly nextPageToken: string
  readonly pageSize: number
  readonly totalSize: number
}

const PAGE = 50
const MOST = 100

/** A page of tasks, the newest status first. */
export async function listTasks(tasks: AgentTasks, query: TaskListQuery): Promise<TaskPage> {
  const { pageSize = PAGE, historyLength = 0, includeArtifacts } = query
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MOST) {
    throw malformed(`pageSize is a whole number from 1 to ${MOST}.`)
  }
  const [from, after] = [cursorIn(query.pageToken), momentIn(query.after)]
  const all = await tasks.runs(query.contextId)
  const bare = await Promise.all(all.map((run) => placed(tasks, run)))
  const wanted = bare.filter(({ at, state }) => at >= after && (query.state === '' || state === query.state))
  wanted.sort((a, b) => b.at - a.at || (a.run.runId < b.run.runId ? 1 : -1))
  const rest =
    from === null ? wanted : wanted.filter(({ at, run }) => at < from.at || (at === from.at && run.runId < from.id))
  const page = rest.slice(0, pageSize)
  const last = rest.length > pageSize ? page.at(-1) : undefined
  return {
    tasks: await Promise.all(page.map(({ run }) => tasks.task(run, { historyLength, artifacts: includeArtifacts }))),
    nextPageToken: last === undefined ? '' : tokenOf(last),
    pageSize: page.length,
    totalSize: wanted.length,
  }
}

interface Placed {
  readonly run: RunTree
  readonly state: string
  readonly at: number
}

async function placed(tasks: AgentTasks, run: RunTree): Promise<Placed> {
  const { state, timestamp } = (await tasks.task(run, { historyLength: 0, artifacts: false })).status
  return { run, state, at: Date.parse(timestamp) }
}

function tokenOf({ at, run }: Placed): string {
  return Buffer.from(`${at} ${run.runId}`).toString('base64url')
}

function cursorIn(token: string): { readonly at: number; readonly id: string } | null {
  if (token === '') return null
  const [, at, id = ''] = /^(\d{1,15}) ([0-9a-f-]{36})$/.exec(Buffer.from(token, 'base64url').toString()) ?? []
  if (at === undefined) throw malformed('The pageToken is not one of ours.')
  return { at: Number(at), id }
}

function momentIn(text: string): number {
  const at = text === '' ? 0 : Date.parse(text)
  if (Number.isNaN(at)) throw malformed('statusTimestampAfter is no time.')
  return at
}

import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createRuntime, type Run, type RunEvent, type RunOutcome, type Runtime, type RuntimeOptions } from 'legate'
import { type RecordOptions, type Replay, record, replay } from 'legate/testing'
import { onTestFinished } from 'vitest'
import { localStore } from '../../support/rows.ts'
import { tempFolder } from '../../support/temp-folder.ts'

/** A file that is gone after the test. */
export function recordingFile(): string {
  const folder = tempFolder()
  return path.join(folder, 'recording.jsonl')
}

export function recorded(file: string, options: RuntimeOptions = {}, how: RecordOptions = {}): Runtime {
  const runtime = record(createRuntime(options), file, how)
  onTestFinished(() => runtime.close())
  return runtime
}

export function replayed(file: string, options: RuntimeOptions = {}): Replay {
  const runtime = replay(file, { logger: QUIET, ...options })
  onTestFinished(() => runtime.close())
  return runtime
}

const QUIET = { debug() {}, info() {}, warn() {}, error() {} }

export interface Seen {
  readonly outcome: RunOutcome
  readonly events: readonly RunEvent[]
  readonly graph: readonly string[]
}

type Drive = (runtime: Runtime) => Run | Promise<Run>

/** What a run looks like without ids and times. */
export async function seen(runtime: Runtime, drive: Drive): Promise<Seen> {
  const run = await drive(runtime)
  const events: RunEvent[] = []
  for await (const event of run) events.push(event)
  const outcome = await run.result
  await runtime.idle(run.id)
  return { outcome, events, graph: graphOf(runtime, run) }
}

export interface Both {
  readonly file: string
  readonly first: Seen
  readonly second: Seen
  readonly runtime: Replay
}

/** Records a run and plays it back, with options for each. */
export async function both(
  drive: Drive,
  { options = {}, playing = options }: { readonly options?: RuntimeOptions; readonly playing?: RuntimeOptions } = {},
): Promise<Both> {
  const file = recordingFile()
  const recording = recorded(file, options)
  const first = await seen(recording, drive)
  await recording.close()
  const runtime = replayed(file, playing)
  const second = await seen(runtime, drive)
  return { file, first, second, runtime }
}

/** The durable events of a run, each in a line. */
export function storyOf({ events }: Seen): string[] {
  return events.filter(({ seq }) => Number.isInteger(seq)).map((event) => plain(event))
}

export function deltasOf({ events }: Seen): string[] {
  return events.flatMap((event) =>
    event.type === 'text-delta' || event.type === 'reasoning-delta' || event.type === 'tool-input-delta'
      ? [`${event.path.join('/')} ${event.type} ${event.text}`]
      : [],
  )
}

export function linesOf(file: string): { readonly [key: string]: unknown }[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { readonly [key: string]: unknown })
}

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g
const OURS = new Set([
  'seq',
  'at',
  'wakeAt',
  'expiresAt',
  'until',
  'durationMs',
  'duration_ms',
  'timestamp',
  'digest',
  'seen',
  'hash',
  'usd',
])

/** As JSON, with ids by the order in which they appear and without times. */
export function plain(value: unknown): string {
  const names = new Map<string, string>()
  const text = JSON.stringify(value, (key, item: unknown) => (OURS.has(key) ? undefined : item))
  return text
    .replaceAll(ID, (id) => {
      const name = names.get(id) ?? `id${names.size + 1}`
      names.set(id, name)
      return name
    })
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
}

/** The nodes of a tree, each in a line, children below what started them. */
function graphOf(runtime: Runtime, run: Run): string[] {
  const store = localStore(runtime)
  const lines: string[] = []
  const visit = (turnId: string, depth: number) => {
    for (const node of store.nodesOf(turnId)) {
      const { kind, purpose, state, attempt, input, output, failure } = node
      lines.push(`${'  '.repeat(depth)}${plain({ kind, purpose, state, attempt, input, output, failure })}`)
      for (const link of store.linksOf(turnId)) if (link.taskId === node.id) visit(link.id, depth + 1)
    }
  }
  visit(run.id, 0)
  return lines
}

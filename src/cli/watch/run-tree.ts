import { parseJson } from '../../base/json.ts'
import type { Id, Json, RunEvent } from '../../index.ts'
import { oneLine } from '../terminal/clean.ts'
import { spendOf, type TokenCost, wordsOf } from './words.ts'

/** Enough of a stream to show its end on one line. */
const HEARD = 400
/** Enough of the streamed answer to show its last lines. */
const SPOKEN = 1_200

/** A run, built from its events. */
export interface WatchedRun {
  readonly id: Id
  readonly agent: string
  readonly children: WatchedRun[]
  /** The beginning of its first prompt, which distinguishes it from others of its name. */
  task: string
  state: 'queued' | 'running' | 'ended'
  startedAt: number | null
  endedAt: number | null
  /** Its status and how it ended, in words. */
  status: string | null
  lastWords: string
  /** The usage of its own model calls, without those of its subagents. */
  readonly spent: TokenCost[]
  /** The text its model is streaming; null if it is silent. */
  hears: { readonly kind: 'text' | 'reasoning' | 'call' | 'progress'; text: string } | null
}

/** Builds a tree of runs from the events of one run, in order. */
export class WatchedTree {
  readonly rootId: Id
  private readonly runs: Map<Id, WatchedRun> = new Map()

  constructor(rootId: Id) {
    this.rootId = rootId
  }

  get root(): WatchedRun | undefined {
    return this.runs.get(this.rootId)
  }

  get size(): number {
    return this.runs.size
  }

  run(id: Id): WatchedRun | undefined {
    return this.runs.get(id)
  }

  take(event: RunEvent): void {
    const run = this.runs.get(event.runId) ?? this.add(event)
    switch (event.type) {
      case 'run-start':
        run.state = 'running'
        run.startedAt = event.at
        return
      case 'run-end':
        run.state = 'ended'
        run.endedAt = event.at
        run.status = event.outcome.status
        run.hears = null
        if (event.outcome.error !== null) run.lastWords = oneLine(event.outcome.error.message)
        return
      case 'message':
        run.hears = null
        if (event.role === 'user' && run.task === '') run.task = taskOf(wordsOf(event.content))
        if (event.role === 'agent') run.lastWords = oneLine(wordsOf(event.content).slice(0, HEARD)) || run.lastWords
        return
      case 'usage':
        run.spent.push(spendOf(event.usage, event.model))
        return
      default:
        hear(run, event)
    }
  }

  private add({ runId, parentId, path }: RunEvent): WatchedRun {
    const run: WatchedRun = {
      id: runId,
      agent: oneLine(path.at(-1) ?? ''),
      children: [],
      task: '',
      state: 'queued',
      startedAt: null,
      endedAt: null,
      status: null,
      lastWords: '',
      spent: [],
      hears: null,
    }
    this.runs.set(runId, run)
    if (runId !== this.rootId) this.runs.get(parentId ?? '')?.children.push(run)
    return run
  }
}

/** Shortens a prompt to a few words; arguments to their values. */
function taskOf(text: string): string {
  const value = text.length > HEARD ? undefined : parsed(text)
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
  const words = isRecord ? Object.values(value).map((one) => (typeof one === 'string' ? one : JSON.stringify(one))) : []
  return oneLine((words.length > 0 ? words.join(', ') : text).trim().slice(0, HEARD))
}

function parsed(text: string): Json | undefined {
  const read = text.startsWith('{') ? parseJson(text) : undefined
  return read?.ok === true ? read.value : undefined
}

/** Keeps the newest streamed text of a run. */
function hear(run: WatchedRun, event: RunEvent): void {
  if ('cumulative' in event) run.hears = null
  switch (event.type) {
    case 'text-delta':
      return add(run, 'text', event.text)
    case 'reasoning-delta':
      return add(run, 'reasoning', event.text)
    case 'tool-input-delta':
      return add(run, 'call', run.hears?.kind === 'call' ? event.text : `${event.tool} ${event.text}`)
    case 'progress':
      run.hears = { kind: 'progress', text: event.message }
      return
    case 'reset':
    case 'retry':
    case 'tool-result':
    case 'node-state':
      run.hears = null
  }
}

function add(run: WatchedRun, kind: 'text' | 'reasoning' | 'call', text: string): void {
  if (run.hears?.kind === kind) run.hears.text = (run.hears.text + text).slice(-SPOKEN)
  else run.hears = { kind, text: text.slice(-SPOKEN) }
}

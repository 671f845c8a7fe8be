import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { lookWith, type Node, type TreeReader } from '../../doors/rows.ts'
import { createRuntime, type Id, type Run, type Runtime } from '../../index.ts'
import { sqliteStore } from '../../stores/sqlite/index.ts'
import { type Paint, painter } from '../terminal/paint.ts'
import { storyLine } from '../watch/event-lines.ts'
import { type Execution, modelKey, readExecutions, Story, toolKey } from './view.ts'

const LONGEST_MS = 60_000
const PAUSE_MS = 800

/**
 * Starts a worker process, shows its progress from the store, kills it midway, starts another one, and counts which
 * calls ran. `entry` is this program, which also runs the worker. Returns the exit code.
 */
export async function demo(entry: string): Promise<number> {
  try {
    const folder = mkdtempSync(join(tmpdir(), 'legate-demo-'))
    const worker = new WorkerProcess(entry, folder)
    clearOnExit(folder, worker)
    const runtime = createRuntime({ store: sqliteStore(join(folder, 'demo.db')) })
    const timer = setTimeout(() => fail(`the run was not over after ${LONGEST_MS / 1000} s.`), LONGEST_MS)
    const code = await new Stage({ folder, worker, runtime, command: commandOf(entry) }).play()
    clearTimeout(timer)
    await worker.ended
    await runtime.close()
    return code
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

/** How this program is called here: in a clone of the package there is no `legate` on the path. */
function commandOf(entry: string): string {
  if (basename(entry) !== 'main.js') return 'legate'
  return entry.includes('node_modules') ? 'npx legate' : `node ${relative('.', entry)}`
}

/** Removes the process, however the demo ends, and the files of a demo that was not played to its end. */
function clearOnExit(folder: string, worker: WorkerProcess): void {
  process.once('exit', (code) => {
    worker.end()
    if (code !== 0) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  })
  process.once('SIGINT', () => process.exit(130))
  process.once('SIGTERM', () => process.exit(143))
  process.stdout.once('error', () => process.exit(0)) // the reader of our output has closed it
  worker.onFailure = fail
}

function fail(message: string): never {
  process.stderr.write(`\nThe demo failed: ${message}\n`)
  process.exit(1)
}

interface Kill {
  readonly pid: number
  readonly calls: Calls
  /** The number of the last event that the killed process wrote. */
  readonly lastSeq: number
}

class Stage {
  private readonly folder: string
  private readonly command: string
  private readonly worker: WorkerProcess
  private readonly runtime: Runtime
  private readonly paint: Paint = painter(process.stdout, process.env)
  private readonly startedAt: number = Date.now()
  private kill: Kill | undefined

  constructor({
    folder,
    worker,
    runtime,
    command,
  }: { readonly folder: string; readonly worker: WorkerProcess; readonly runtime: Runtime; readonly command: string }) {
    this.folder = folder
    this.command = command
    this.worker = worker
    this.runtime = runtime
  }

  async play(): Promise<number> {
    this.print('\nOne agent, three subagents, and a kill -9 in the middle.\n')
    this.print(
      this.paint('dim', 'The models are scripted: no key, no network. The tools really read this package.\n\n'),
    )
    this.startWorker('starts')
    const run = await this.findRun()
    await this.watch(run)
    const { status } = await run.result
    if (this.kill === undefined) throw new Error('the run was over before its process could be killed.')
    const report = reportOf(this.kill.calls, readExecutions(join(this.folder, 'calls.log')), this.kill.pid)
    this.tellEnd(status, report)
    return status === 'completed' && report.repeated === 0 ? 0 : 1
  }

  /** Waits until the worker has recorded its run. */
  private async findRun(): Promise<Run> {
    for (;;) {
      const [turn] = await this.runtime.store.openRoots({ limit: 1 })
      if (turn !== undefined) return this.runtime.attach(turn.id)
      await sleep(20)
    }
  }

  /** Reads the events of both processes from the store. */
  private async watch(run: Run): Promise<void> {
    const story = new Story(this.paint)
    let isBack = false
    for await (const event of run) {
      const told = story.tell(event)
      if (told !== undefined) this.print(storyLine(this.paint, event.at - this.startedAt, told))
      if (event.type === 'delegation-end' && this.kill === undefined) this.kill = await this.killWorker(run)
      if (isBack || this.kill === undefined || event.seq < this.kill.lastSeq) continue
      isBack = true
      await this.comeBack(this.kill)
    }
  }

  private async killWorker({ id, conversationId }: Run): Promise<Kill> {
    const pid = await this.worker.kill()
    return lookWith(this.runtime.store, id, (tree) => ({
      pid,
      calls: callsOf(tree, id),
      lastSeq: tree.lastSeq(conversationId),
    }))
  }

  private async comeBack({ pid, calls }: Kill): Promise<void> {
    const left = `${calls.finished.size} calls had finished, ${calls.running.size} were running`
    this.tell(this.paint('red', `kill -9 ${pid}: the process is gone. ${left}.`))
    await sleep(PAUSE_MS)
    this.startWorker('starts, opens the same file and calls runtime.resume()')
  }

  private startWorker(how: string): void {
    this.tell(this.paint('cyan', `process ${this.worker.start()} ${how}`))
  }

  private tellEnd(status: string, report: DemoReport): void {
    const bold = (value: string | number) => this.paint('bold', String(value))
    const seconds = ((Date.now() - this.startedAt) / 1000).toFixed(1)
    this.print(`
The run ended ${bold(status)} after ${seconds} s and ${report.processes} processes.

  ${bold(report.calls)} nodes called a model or a tool, ${report.executions} times in all (counted by the calls themselves).
  ${bold(report.kept)} of them had finished before the kill: ${bold(report.repeated)} ran twice.
  ${bold(report.interrupted)} of them were interrupted by it: ${bold(report.rerun)} ran again.

See the run in your browser, step by step:

  ${this.command} serve --store ${join(this.folder, 'demo.db')}

Try next: examples/02-delegation.ts (typed subagents), examples/08-survive-a-restart.ts, then README.md.
`)
  }

  private tell(what: string): void {
    this.print(storyLine(this.paint, Date.now() - this.startedAt, ['', what]))
  }

  private print(text: string): void {
    process.stdout.write(text)
  }
}

/** The worker process of the demo: one at a time, killed on request, never left behind. */
class WorkerProcess {
  /** Called if a worker ends by itself with an error. */
  onFailure: (message: string) => void = () => undefined
  private readonly entry: string
  private readonly folder: string
  private child: ChildProcess | undefined
  private gone: Promise<unknown> = Promise.resolve()

  constructor(entry: string, folder: string) {
    this.entry = entry
    this.folder = folder
  }

  /** Resolves when the current worker has ended. */
  get ended(): Promise<unknown> {
    return this.gone
  }

  start(): number {
    const child = fork(this.entry, ['demo-worker', this.folder], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.child = child
    this.gone = once(child, 'exit')
    child.once('error', ({ message }) => this.onFailure(message))
    child.once('exit', (code, signal) => {
      if (this.child === child && code !== 0) this.onFailure(`its worker ended with ${signal ?? code}.`)
    })
    return child.pid ?? 0
  }

  /** Kills the worker and returns its process id. */
  async kill(): Promise<number> {
    const pid = this.child?.pid ?? 0
    this.end()
    await this.gone
    return pid
  }

  end(): void {
    const { child } = this
    this.child = undefined
    child?.kill('SIGKILL')
  }
}

/** The model and tool calls in the rows of a run, by state. */
export interface Calls {
  readonly finished: ReadonlySet<string>
  readonly running: ReadonlySet<string>
}

export interface DemoReport {
  /** The nodes that called a model or a tool, the number of calls in all, and the number of processes. */
  readonly calls: number
  readonly executions: number
  readonly processes: number
  /** Calls that had finished before the kill. */
  readonly kept: number
  /** Finished calls that ran again; must be 0. */
  readonly repeated: number
  /** Calls that had begun but not finished, and how many of those ran again. */
  readonly interrupted: number
  readonly rerun: number
}

/** Reads the calls of a run and its children from the store. */
function callsOf(tree: TreeReader, runId: Id): Calls {
  const nodes = keyedNodes(tree, runId)
  const inState = (state: Node['state']) =>
    new Set(nodes.filter(({ node }) => node.state === state).map(({ key }) => key))
  return { finished: inState('finished'), running: inState('running') }
}

/** Compares the log that the calls wrote themselves with the rows at the moment of the kill. */
export function reportOf(atKill: Calls, executions: readonly Execution[], killedPid: number): DemoReport {
  const times = new Map<string, number>()
  for (const { key } of executions) times.set(key, (times.get(key) ?? 0) + 1)
  const ranTwice = (key: string) => (times.get(key) ?? 0) > 1
  const begun = new Set(executions.filter(({ pid }) => pid === killedPid).map(({ key }) => key))
  const interrupted = [...begun].filter((key) => !atKill.finished.has(key))
  return {
    calls: times.size,
    executions: executions.length,
    processes: new Set(executions.map(({ pid }) => pid)).size,
    kept: atKill.finished.size,
    repeated: [...atKill.finished].filter(ranTwice).length,
    interrupted: interrupted.length,
    rerun: interrupted.filter(ranTwice).length,
  }
}

interface KeyedNode {
  readonly node: Node
  readonly key: string
}

function keyedNodes(tree: TreeReader, turnId: Id): KeyedNode[] {
  const nodes = tree.nodesOf(turnId)
  const path = tree.conversation(nodes[0]?.conversationId ?? '')?.path ?? []
  const answers = nodes.filter(({ kind }) => kind === 'agent_message')
  const tools = nodes.filter(({ kind, input }) => kind === 'task' && input.delegates !== true)
  return [
    ...answers.map((node, before) => ({ node, key: modelKey(path, before) })),
    ...tools.map((node) => ({ node, key: toolKey(node.id) })),
    ...tree.linksOf(turnId).flatMap((link) => keyedNodes(tree, link.id)),
  ]
}

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Agent, createRuntime, type Run, type Runtime } from 'legate'
import type { Node } from 'legate/rows'
import { sqliteStore } from 'legate/store/sqlite'
import { onTestFinished, type TestContext } from 'vitest'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { localStore } from '../../support/rows.ts'
import { callHost, type Ended, isHosted, PATIENCE_MS, type StartOptions } from './host.ts'

export type { Ended } from './host.ts'

export const root = path.resolve(import.meta.dirname, '../../..')
export const program = path.join(root, 'dist/cli/main.js')
export const agentsModule = path.join(root, 'test/cli/programs/agents.mjs')

export function skipUnlessBuilt({ skip }: Pick<TestContext, 'skip'>): void {
  skip(!existsSync(program), 'dist is not built: npm run build')
}

/** A folder with a store and a gate that holds agents until it is opened; all is gone after the test. */
export class Place {
  readonly folder: string = mkdtempSync(path.join(tmpdir(), 'legate-cli-'))
  readonly store: string = path.join(this.folder, 'runs.db')
  /** More for the environment of everything that is started here. */
  readonly more: NodeJS.ProcessEnv = {}
  private readonly gate: string = path.join(this.folder, 'gate')
  private readonly children: Process[] = []

  constructor(atEnd: (clear: () => Promise<void>) => void = onTestFinished) {
    atEnd(() => this.clear())
  }

  /** Environment of everything that is started here: no colours, no store of the user's own. */
  get env(): NodeJS.ProcessEnv {
    const { FORCE_COLOR: _, NO_COLOR: __, CI: ___, ...env } = process.env
    return {
      ...env,
      LEGATE_DB: this.store,
      LEGATE_TEST_GATE: this.gate,
      XDG_STATE_HOME: this.folder,
      XDG_CONFIG_HOME: this.folder,
      TERM: 'xterm',
      ...this.more,
    }
  }

  open(): void {
    writeFileSync(this.gate, '')
  }

  /** A program that starts runs of these agents and works on them. Gives it and the runs' ids. */
  async startRuns(agents: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<{ worker: Process; ids: string[] }> {
    const worker = this.start([path.join(root, 'test/cli/programs/start.mjs'), this.store, ...agents], { env })
    await worker.seen(() => worker.stdout.split('\n').length > agents.length)
    return { worker, ids: worker.stdout.trim().split('\n').slice(0, agents.length) }
  }

  /** Runs that have ended, and their ids. They are made in this process: nothing that reads them can tell. */
  endedRuns(...agents: readonly string[]): Promise<string[]> {
    this.open()
    return this.runHere(agents, (_runtime, runs) => Promise.all(runs.map(({ result }) => result)))
  }

  /** Runs that wait for a person's word or answer and were handed back: nobody works on them. */
  parkedRuns(...agents: readonly string[]): Promise<string[]> {
    return this.runHere(agents, (runtime, runs) =>
      until('all wait', () => runs.every(({ id }) => localStore(runtime).openNodes(id).some(isParked))),
    )
  }

  /** Runs whose process was killed in the middle: it stands at the gate. */
  async orphans(...agents: readonly string[]): Promise<string[]> {
    const { worker, ids } = await this.startRuns(agents)
    const runtime = createRuntime({ store: sqliteStore(this.store) })
    await until('every run is at work', () => ids.every((id) => isAtWork(runtime, id)))
    worker.kill('SIGKILL')
    await worker.ended
    await runtime.close()
    return ids
  }

  /** Another place with the same runs, for one test alone; its gate is closed. */
  copy(): Place {
    const place = new Place()
    for (const ending of ['', '-wal']) {
      if (existsSync(this.store + ending)) copyFileSync(this.store + ending, place.store + ending)
    }
    return place
  }

  legate(args: readonly string[], options: StartOptions = {}): Process {
    return this.start([program, ...args], options)
  }

  /** Fails, and says what was printed so far, when it does not end. Where the process is not what counts, it is not a new one. */
  async run(args: readonly string[], options: StartOptions = {}): Promise<Ended> {
    const { cwd = this.folder, input } = options
    const env = { ...this.env, ...options.env }
    if (isHosted(args, { ...options, env })) return callHost({ program, args, env, cwd, input })
    const started = this.legate(args, options)
    const timer = setTimeout(() => started.kill('SIGKILL'), PATIENCE_MS)
    const ended = await started.ended
    clearTimeout(timer)
    if (ended.code !== null) return ended
    throw new Error(`legate ${args.join(' ')} did not end. It printed:\n${ended.stdout}${ended.stderr}`)
  }

  runtime(atEnd: (clear: () => Promise<void>) => void = onTestFinished): Runtime {
    const runtime = createRuntime({ store: sqliteStore(this.store) })
    atEnd(() => runtime.close())
    return runtime
  }

  private async runHere(
    names: readonly string[],
    isMade: (runtime: Runtime, runs: readonly Run[]) => Promise<unknown>,
  ): Promise<string[]> {
    const agents = new Map(Object.entries((await import(agentsModule)) as Record<string, Agent>))
    const runtime = createRuntime({ store: sqliteStore(this.store), agents: [...agents.values()] })
    const runs = names.map((name) => runtime.run(agents.get(name) as Agent, 'What colour is it?'))
    await isMade(runtime, runs)
    await runtime.close()
    return runs.map(({ id }) => id)
  }

  private start(args: readonly string[], { env = {}, uid, cwd = this.folder, input }: StartOptions): Process {
    const child = spawn(process.execPath, args, {
      cwd,
      env: { ...this.env, ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    })
    child.stdin?.end(input)
    const started = new Process(child)
    this.children.push(started)
    return started
  }

  private async clear(): Promise<void> {
    for (const child of this.children) child.kill('SIGKILL')
    await Promise.all(this.children.map(({ ended }) => ended))
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** A started program and what it has printed so far. */
export class Process {
  readonly ended: Promise<Ended>
  stdout = ''
  stderr = ''
  /** Hears what is printed, and when. */
  onOutput: (text: string, at: number) => void = () => undefined
  private readonly child: ChildProcess

  constructor(child: ChildProcess) {
    this.child = child
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
      this.onOutput(text, Date.now())
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
    })
    this.ended = once(child, 'close').then(([code]) => ({
      code: code as number | null,
      stdout: this.stdout,
      stderr: this.stderr,
    }))
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }

  /** Whoever reads its output goes away. */
  closeOutput(): void {
    this.child.stdout?.destroy()
  }

  /** Waits until it has printed this. */
  async says(text: string): Promise<void> {
    await this.seen(() => this.stdout.includes(text) || this.stderr.includes(text), `"${text}"`)
  }

  seen(check: () => boolean, what = 'what was waited for'): Promise<true> {
    return until(`${what} in:\n${this.stdout}${this.stderr}`, () => check() || undefined)
  }
}

export async function until<T>(what: string, check: () => T | undefined | false): Promise<T> {
  const giveUpAt = performance.now() + PATIENCE_MS
  for (;;) {
    const found = check()
    if (found !== undefined && found !== false) return found
    if (performance.now() > giveUpAt) throw new Error(`waited ${PATIENCE_MS} ms for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Does it wait for a person's word, or for an answer? */
function isParked({ state, wait }: Node): boolean {
  return state === 'awaiting_approval' || wait != null
}

/** Does the run, or each of the subagents it is going to have, do what the gate holds up? */
function isAtWork(runtime: Runtime, runId: string): boolean {
  const store = localStore(runtime)
  const isRunning = (id: string, kind: string) =>
    store.openNodes(id).some((node) => node.state === 'running' && node.kind === kind)
  const calls = store.openNodes(runId).filter(({ kind }) => kind === 'task')
  const links = store.openLinks(runId)
  if (calls.length === 0) return isLead(store, runId) ? false : isRunning(runId, 'agent_message')
  return links.length === calls.length && links.every(({ id }) => isRunning(id, 'task'))
}

function isLead(store: LocalStore, runId: string): boolean {
  return store.conversation(store.turn(runId)?.conversationId ?? '')?.agent.name === 'lead'
}

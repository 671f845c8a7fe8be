import type { Id, Run, Runtime } from '../../index.ts'
import { EXIT } from '../command.ts'
import { standingOf } from '../watch/standing.ts'
import type { View } from '../watch/view.ts'
import type { TakeUp } from './cancelled-runs.ts'
import type { InlineAsk } from './inline-ask.ts'
import { onInterrupt } from './interrupt.ts'
import type { ScopedStore } from './scoped-store.ts'
import { endOf, exitCodeOf, nameOf, standstillOf, type Verdict } from './verdict.ts'

const LOOK_MS = 250

export interface WorkerParts {
  readonly runtime: Runtime
  readonly view: View
  readonly knownAgents: ScopedStore['knownAgents']
  /** The last event of each tree before this worker began: what comes after it is news. */
  readonly lastSeqs: ReadonlyMap<Id, number>
  /** Where there is a person at the terminal. */
  readonly asker: InlineAsk | undefined
  readonly again: TakeUp
}

/** Drives runs until none of them can go on, and shows them meanwhile. Hears signals from the moment it is made. */
export class Worker {
  private readonly parts: WorkerParts
  private readonly verdicts: Map<Run, Verdict> = new Map()
  /** Standstills seen once: seen again, they are believed. */
  private readonly doubts: Map<Run, string> = new Map()
  private runs: readonly Run[] = []
  private exitCode: number | undefined
  private done: () => void = () => undefined
  private readonly isDone: Promise<void> = new Promise((resolve) => {
    this.done = resolve
  })

  constructor(parts: WorkerParts) {
    this.parts = parts
    onInterrupt({
      ask: () => this.stopAll(),
      leave: () => this.leave(EXIT.terminated),
      restore: () => this.giveBack(),
    })
  }

  /** Gives the exit code. */
  async drive(runs: readonly Run[]): Promise<number> {
    this.runs = runs
    const { view } = this.parts
    const timer = setInterval(() => this.look(), LOOK_MS)
    for (const run of runs) this.watch(run).catch((error: unknown) => this.settle(run, lost(error)))
    await this.isDone
    clearInterval(timer)
    this.giveBack()
    for (const { text } of this.verdicts.values()) view.say(`\n${text}\n`)
    return this.exitCode ?? exitCodeOf([...this.verdicts.values()])
  }

  private async watch(run: Run): Promise<void> {
    const { runtime, view, lastSeqs, again } = this.parts
    const ended = endOf(runtime, run, again)
    const after = view.wantsHistory ? 0 : (lastSeqs.get(rootOf(runtime, run)) ?? 0)
    for await (const event of run.events({ after })) await view.take(event, run.id)
    this.settle(run, await ended)
  }

  /** The terminal as it was. */
  private giveBack(): void {
    this.parts.asker?.close()
    this.parts.view.close()
  }

  private settle(run: Run, verdict: Verdict): void {
    this.verdicts.set(run, verdict)
    if (this.verdicts.size === this.runs.length) this.done()
  }

  /** A run at a standstill comes back to life when somebody answers it, as long as there are others to wait for. */
  private look(): void {
    const { runtime, knownAgents, asker } = this.parts
    const known = knownAgents()
    if (known === undefined) return
    asker?.look(this.runs).catch(() => undefined)
    for (const run of this.runs) {
      const verdict = attempt(() => standstillOf(runtime, run, known))
      const isOver = this.verdicts.has(run) && runtime.store.turn(run.id)?.state === 'ended'
      if (verdict === undefined || isOver) continue
      // Whoever is asked may take the time that is needed.
      if (verdict?.exitCode === EXIT.parked && asker !== undefined && this.exitCode === undefined) continue
      if (verdict === null) {
        this.doubts.delete(run)
        this.verdicts.delete(run)
      } else if (this.doubts.get(run) === verdict.text) this.settle(run, verdict)
      else this.doubts.set(run, verdict.text)
    }
  }

  /** Runs that another living process works on are its own affair. */
  private stopAll(): void {
    const { runtime, view } = this.parts
    this.exitCode = EXIT.interrupted
    const open = this.runs.filter((run) => runtime.store.turn(run.id)?.state !== 'ended')
    const driven = open.filter((run) => !isOfOthers(runtime, run))
    if (driven.length === 0) return this.done()
    view.say('Stopping; what is done is kept. Ctrl-C again ends at once.\n')
    for (const run of driven) {
      run.cancel('Interrupted with Ctrl-C.').catch((error: unknown) => view.say(`${nameOf(runtime, run)}: ${error}\n`))
    }
    for (const run of open) if (!driven.includes(run)) this.settle(run, LEFT)
  }

  private leave(exitCode: number): void {
    this.exitCode = exitCode
    this.parts.view.say('Handing back what is unfinished.\n')
    this.done()
  }
}

const LEFT: Verdict = { exitCode: EXIT.other, text: 'Another process goes on with the rest.' }

function lost(error: unknown): Verdict {
  return { exitCode: EXIT.other, text: error instanceof Error ? error.message : String(error) }
}

function rootOf({ store }: Runtime, { conversationId }: Run): string {
  return store.conversation(conversationId)?.rootId ?? conversationId
}

function isOfOthers(runtime: Runtime, run: Run): boolean {
  const turn = runtime.store.turn(run.id)
  return turn !== undefined && standingOf(runtime, turn).pids.some((pid) => pid !== process.pid)
}

/** Undefined when the store is locked for a moment. */
function attempt<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

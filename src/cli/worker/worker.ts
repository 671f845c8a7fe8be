// Drives runs for `run`, `chat` and `resume`: follows their events, asks the person, and decides when to stop.
//
// Owns: signals (Ctrl-C, SIGTERM), the responders, and the verdict of each run.
// Called by: `commands/run`, `commands/chat`, `commands/change/resume`.
//
// Must stay true:
// - It ends when no run can continue here, and says for each what it waits for and which command continues it.
// - A standstill counts only when it is seen twice, after everything answerable here was answered.
// - The terminal is restored on every way out.

import { look, lookWith, type Turn } from '../../doors/rows.ts'
import type { AnyAgent, Id, Json, Run, Runtime } from '../../index.ts'
import { CliError, EXIT } from '../command/command.ts'
import type { Desk, DeskRun } from '../desk/desk.ts'
import { shownId } from '../store/find-run.ts'
import { oneLine } from '../terminal/clean.ts'
import { openStateOf } from '../watch/activity.ts'
import type { RunView } from '../watch/view.ts'
import type { Responder } from './responder.ts'
import type { ScopedStore } from './scoped-store.ts'
import { type ContinueCommand, exitCodeOf, type RunVerdict, runName, type Standstill, standstillOf } from './verdict.ts'

const LOOK_MS = 250

export interface WorkerParts {
  readonly desk: Desk
  readonly view: RunView
  readonly knownAgents: ScopedStore['knownAgents']
  /** The last event of each tree before this worker began; later ones are new. */
  readonly lastSeqs: ReadonlyMap<Id, number>
  /** Those who answer requests that need a person. */
  readonly askers: readonly Responder[]
  /** Reports a run that has ended. */
  readonly ended: (run: DeskRun) => Promise<RunVerdict>
  /** Writes the command that continues a run once everything is answered. */
  readonly goOn: ContinueCommand
  /** Ctrl-C also stops runs that other processes work on: those of a server. */
  readonly stopsAll?: boolean
}

/** Drives runs until none can continue, and shows them. Handles signals from its construction on. */
export class Worker {
  private readonly parts: WorkerParts
  private readonly verdicts: Map<Id, RunVerdict> = new Map()
  /** Standstills seen once; a second look confirms them. */
  private readonly doubts: Map<Id, string> = new Map()
  /** Reported standstills of runs that this process must stay alive for. */
  private readonly told: Map<Id, string> = new Map()
  private runs: readonly DeskRun[] = []
  private exitCode: number | undefined
  private isLooking = false
  private done: () => void = () => undefined
  private readonly release: () => void

  constructor(parts: WorkerParts) {
    this.parts = parts
    this.release = onInterrupt(
      () => this.stopAll().catch((error: unknown) => this.giveUp(error)),
      () => this.leave(EXIT.terminated),
      () => this.restoreTerminal(),
    )
  }

  /** Resolves when none of these runs can continue, or the process was asked to end. */
  async follow(runs: readonly DeskRun[]): Promise<void> {
    if (this.exitCode !== undefined) return
    this.runs = runs
    for (const { id } of runs) this.verdicts.delete(id)
    const isDone = new Promise<void>((resolve) => {
      this.done = resolve
    })
    const timer = setInterval(() => this.look().catch(() => undefined), LOOK_MS)
    for (const run of runs) this.watch(run).catch((error: unknown) => this.recordVerdict(run, lost(error)))
    await isDone
    clearInterval(timer)
    await Promise.all(this.parts.askers.map((asker) => asker.settled()))
  }

  /** Restores the terminal, reports the result of all runs, and returns the exit code. */
  end(): number {
    this.restoreTerminal()
    const verdicts = [...this.verdicts.values()]
    for (const { text } of verdicts) if (text !== '') this.parts.view.say(`\n${text}\n`)
    return this.exitCode ?? exitCodeOf(verdicts)
  }

  /** Stops handling signals. */
  close(): void {
    this.release()
  }

  private async watch(run: DeskRun): Promise<void> {
    const { desk, view, lastSeqs } = this.parts
    const ended = this.parts.ended(run)
    // The iteration reports the same error.
    ended.catch(() => undefined)
    const after = view.wantsHistory ? 0 : (lastSeqs.get(await rootOf(desk, run)) ?? 0)
    for await (const event of run.events({ after })) {
      await view.take(event, run.id)
      if (event.type === 'approval-request' || event.type === 'question') this.ask().catch(() => undefined)
    }
    this.recordVerdict(run, await ended)
  }

  /** Restores the terminal. */
  private restoreTerminal(): void {
    for (const asker of this.parts.askers) asker.close()
    this.parts.view.close()
  }

  private recordVerdict(run: DeskRun, verdict: RunVerdict): void {
    this.verdicts.set(run.id, verdict)
    if (this.runs.every(({ id }) => this.verdicts.has(id))) this.done()
  }

  private async ask(): Promise<void> {
    await Promise.all(this.parts.askers.map((asker) => asker.look(this.runs)))
  }

  private async look(): Promise<void> {
    const known = this.parts.knownAgents()
    if (known === undefined || this.isLooking) return
    this.isLooking = true
    try {
      // Requests that can be answered here are answered before a standstill is declared.
      await this.ask()
      await this.findStandstills(known)
    } finally {
      this.isLooking = false
    }
  }

  /** Finds standstills. A run continues if somebody answers it while others keep this worker busy. */
  private async findStandstills(known: ReadonlySet<string>): Promise<void> {
    const { desk, askers, goOn } = this.parts
    const isAsking = askers.some(({ isPatient }) => isPatient) && this.exitCode === undefined
    for (const run of this.runs) {
      const verdict = await attempt(() => standstillOf(desk, run, { goOn, known }))
      const turn = await lookWith(desk.store, run.id, (tree) => tree.turn(run.id))
      if (verdict === undefined || (this.verdicts.has(run.id) && turn?.state === 'ended')) continue
      // A person who is asked may take as long as needed.
      if (verdict !== null && verdict.exitCode !== EXIT.other && isAsking) continue
      if (verdict === null) {
        this.doubts.delete(run.id)
        this.verdicts.delete(run.id)
      } else if (this.doubts.get(run.id) === verdict.text) this.confirmStandstill(run, verdict)
      else this.doubts.set(run.id, verdict.text)
    }
  }

  /** Confirms a standstill. If this process must stay alive for it, says once what it waits for. */
  private confirmStandstill(run: DeskRun, { exitCode, text }: Standstill): void {
    if (exitCode !== null) return this.recordVerdict(run, { exitCode, text })
    this.verdicts.delete(run.id)
    if (this.told.get(run.id) === text) return
    this.told.set(run.id, text)
    this.parts.view.say(`${text}\n`)
  }

  /** Stops all runs of this worker, but not those of another live process. */
  private async stopAll(): Promise<void> {
    const { desk, view } = this.parts
    this.exitCode = EXIT.interrupted
    const open: DeskRun[] = []
    const driven: DeskRun[] = []
    for (const run of this.runs) {
      const turn = await lookWith(desk.store, run.id, (tree) => tree.turn(run.id))
      if (turn?.state === 'ended') continue
      open.push(run)
      const isOurs = this.parts.stopsAll === true || turn === undefined || !(await isOfOthers(desk, turn))
      if (isOurs) driven.push(run)
    }
    if (driven.length === 0) return this.done()
    view.say('Stopping. Finished work is kept. Press Ctrl-C again to end at once.\n')
    for (const run of driven) {
      run.cancel('Interrupted with Ctrl-C.').catch(async (error: unknown) => {
        view.say(`${await runName(desk, run)}: ${error}\n`)
      })
    }
    for (const run of open) if (!driven.includes(run)) this.recordVerdict(run, LEFT)
  }

  /** Ends when the store cannot be read any more. */
  private giveUp(error: unknown): void {
    this.parts.view.say(`${lost(error).text}\n`)
    this.done()
  }

  private leave(exitCode: number): void {
    this.exitCode = exitCode
    this.parts.view.say('Leaving unfinished runs to the next worker.\n')
    this.done()
  }
}

const LEFT: RunVerdict = { exitCode: EXIT.other, text: 'Another process continues the rest.' }

function lost(error: unknown): RunVerdict {
  return { exitCode: EXIT.other, text: error instanceof Error ? error.message : String(error) }
}

async function rootOf({ store }: Desk, { conversationId }: DeskRun): Promise<Id> {
  return (await store.rootOf(conversationId)) ?? conversationId
}

async function isOfOthers(desk: Desk, turn: Turn): Promise<boolean> {
  const { pids } = await openStateOf(desk, turn)
  return pids.some((pid) => pid !== process.pid)
}

/** Reads the store; undefined if it is locked for a moment. */
async function attempt<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look()
  } catch {
    return undefined
  }
}

/**
 * Handles signals: the first Ctrl-C asks to stop, the second ends at once; SIGTERM and SIGHUP hand over. Returns a
 * function that removes the handlers.
 */
function onInterrupt(
  /** Called on the first Ctrl-C. */
  ask: () => void,
  /** Called on SIGTERM or when the terminal is gone: leaves unfinished work to others. */
  leave: () => void,
  /** Called before the process ends at once, to restore what must be restored. */
  restore: () => void,
): () => void {
  let asked = false
  const interrupted = (): void => {
    if (asked) {
      restore()
      process.exit(EXIT.interrupted)
    }
    asked = true
    ask()
  }
  process.on('SIGINT', interrupted)
  process.once('SIGTERM', leave)
  process.once('SIGHUP', leave)
  return () => {
    process.off('SIGINT', interrupted)
    process.off('SIGTERM', leave)
    process.off('SIGHUP', leave)
  }
}

const GO_ON = 'Go on where you stopped.'

/**
 * Continues a cancelled run with one more run of its conversation: the agent reads what was said and done. Throws a
 * CliError if that is not possible.
 */
export async function continueCancelled(runtime: Runtime, target: Turn, agents: readonly AnyAgent[]): Promise<Run> {
  const id = shownId(target.id)
  const { rootId, conversationId } = target
  const conversation = await look(runtime.store, rootId, (tree) => tree.conversation(conversationId))
  refuseEnded(target)
  if (conversation?.type !== 'user')
    throw new CliError(`The run ${id} belongs to a subagent. Only its host can start it again.`)
  const { name, inline } = conversation.agent
  if (inline !== undefined) return sendMessage(runtime, conversation.id, GO_ON)
  const agent = agents.find((one) => one.name === name)
  if (agent === undefined)
    throw new CliError(`The module exports no agent "${oneLine(name)}", which the run ${id} needs.`)
  const input = agent.input === null ? GO_ON : await sameInput(agent, target)
  return runtime.run(agent, input as never, { conversationId: conversation.id })
}

/** Throws a CliError for a run that has ended and was not cancelled: nothing takes it up again. */
export function refuseEnded({ id, outcome }: Turn): void {
  if (outcome === null || outcome.status === 'cancelled') return
  throw new CliError(`The run ${shownId(id)} has ended: ${oneLine(outcome.status)}. There is nothing to resume.`)
}

/** Sends one more message to an agent that its row holds, which starts one more run. */
export async function sendMessage(runtime: Runtime, conversationId: Id, message: string): Promise<Run> {
  const talk = await runtime.conversation(conversationId)
  const turnId = await talk.mutate((change) => {
    change.createNode({ kind: 'user_message', content: message })
    return change.runId
  })
  return runtime.attach(turnId)
}

/** Repeats the input of an agent with a schema, which accepts no other text, after everything that was said. */
async function sameInput({ name, input }: AnyAgent, { id, conversationId, input: asked }: Turn): Promise<Json> {
  const checked = await input?.validate(asked)
  if (checked === undefined || checked.ok) return asked
  throw new CliError(
    `The run ${shownId(id)} was cancelled, and the input schema of "${oneLine(name)}" does not accept its input a ` +
      `second time (${oneLine(checked.issues.map(({ message }) => message).join('; '))}). Continue in your program: runtime.run(agent, input, ` +
      `{ conversationId: '${conversationId}' }).`,
  )
}

import type { PendingApproval, PendingQuestion } from '../../index.ts'
import type { Desk, DeskRun } from '../desk/desk.ts'
import { exactLine } from '../terminal/clean.ts'
import type { RunView } from '../watch/view.ts'

/** Answers, in this worker, the requests of its runs that need a person. */
export interface Responder {
  /** Whether it waits for somebody. If not, open requests are left to other commands. */
  readonly isPatient: boolean
  /** Looks for requests in these runs. Resolves when those it can answer alone are answered. */
  look(runs: readonly DeskRun[]): Promise<void>
  /** Resolves when every answer it gave is stored or refused. */
  settled(): Promise<unknown>
  close(): void
}

export type PersonRequest = PendingApproval | PendingQuestion

export function isQuestion(asked: PersonRequest): asked is PendingQuestion {
  return 'to' in asked
}

/** Identifies one request: a node may make several in turn, and each is separate. */
export function requestKey(asked: PersonRequest): string {
  return isQuestion(asked) ? asked.nodeId : `${asked.nodeId} ${asked.seen}`
}

export async function approvalsOfRuns(desk: Desk, runs: readonly DeskRun[]): Promise<PendingApproval[]> {
  const found = await Promise.all(runs.map(({ id }) => desk.approvals({ runId: id })))
  return found.flat()
}

/** More than any person answers in a sitting. */
const MOST_QUESTIONS = 1_000

export async function questionsOfRuns(desk: Desk, runs: readonly DeskRun[]): Promise<PendingQuestion[]> {
  const { store } = desk
  const roots = new Set(await Promise.all(runs.map(({ conversationId }) => store.rootOf(conversationId))))
  const asked: PendingQuestion[] = []
  for (const question of await desk.questions({ limit: MOST_QUESTIONS })) {
    if (roots.has(await store.rootOf(question.conversationId))) asked.push(question)
  }
  return asked
}

export interface SayYesOptions {
  readonly desk: Desk
  readonly view: RunView
  readonly by: string
}

/** Allows everything its runs ask for, as `--yes` said at the start, and records each answer. Questions stay open. */
export class SayYes implements Responder {
  readonly isPatient = false
  private readonly options: SayYesOptions
  /** Answers on their way, by the key of the request. */
  private readonly answers: Map<string, Promise<void>> = new Map()

  constructor(options: SayYesOptions) {
    this.options = options
  }

  async look(runs: readonly DeskRun[]): Promise<void> {
    for (const asked of await approvalsOfRuns(this.options.desk, runs)) {
      const key = requestKey(asked)
      if (this.answers.has(key)) continue
      this.answers.set(
        key,
        this.allow(asked).finally(() => this.answers.delete(key)),
      )
    }
    await this.settled()
  }

  async settled(): Promise<void> {
    await Promise.all(this.answers.values())
  }

  close(): void {}

  private async allow({ nodeId, request, seen }: PendingApproval): Promise<void> {
    const { desk, view, by } = this.options
    try {
      await desk.answer(nodeId, { allow: true, by: `${by} (--yes)`, seen })
      view.say(`Allowed ${exactLine(request)}.\n`)
    } catch {
      // Somebody else was faster, or the store is locked for a moment: the next look finds out.
    }
  }
}

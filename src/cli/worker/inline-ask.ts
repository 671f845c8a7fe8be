import { askedText, lookWith, seenOf } from '../../doors/rows.ts'
import type { ApprovalDecision, QuestionAnswer } from '../../index.ts'
import { type Call, isSet } from '../command/command.ts'
import type { Desk, DeskRun } from '../desk/desk.ts'
import { TypedLine } from '../terminal/ask-line.ts'
import { exactLine, oneLine } from '../terminal/clean.ts'
import { hasScreen } from '../terminal/paint.ts'
import { requestLines, type ScreenQuestion } from '../watch/request-text.ts'
import type { RunView } from '../watch/view.ts'
import { workspaceOf } from '../watch/words.ts'
import {
  approvalsOfRuns,
  isQuestion,
  type PersonRequest,
  questionsOfRuns,
  type Responder,
  requestKey,
  SayYes,
} from './responder.ts'

/** Keys typed this soon after a question appears were not meant for it. */
const UNREAD_MS = 400
/** The longest input: enough to see that a key is not an answer, and enough for a written one. */
const LONGEST = { key: 12, words: 8_000 } as const

export interface InlineAskOptions {
  readonly desk: Desk
  readonly view: RunView
  readonly by: string
  /** Leave approvals to another asker. */
  readonly questionsOnly?: boolean
}

/**
 * Asks the person at the terminal, one question at a time, below the tree. An answer is a key and Enter, both typed
 * after the question could be read; anything typed earlier is dropped.
 */
export class InlineAsk implements Responder {
  readonly isPatient = true
  private readonly options: InlineAskOptions
  private current: PersonRequest | undefined
  /** The workspace of the run that asks. */
  private folder: string | undefined
  /** Answers on their way, by the key of the request, so that it is not asked again. */
  private readonly answers: Map<string, Promise<void>> = new Map()
  private line: TypedLine = new TypedLine(LONGEST.key)
  private isHeard = false
  /** Whether the last line was no answer; shown until the next key. */
  private isWrong = false
  private isClosed = false
  private soon: ReturnType<typeof setTimeout> | undefined
  private readonly onKeys = (keys: Buffer): void => this.hear(keys.toString('utf8'))

  constructor(options: InlineAskOptions) {
    this.options = options
  }

  /** Tells whether there is a person to ask and a screen to ask on. */
  static isPossible(env: NodeJS.ProcessEnv): boolean {
    return process.stdin.isTTY === true && hasScreen(process.stdout, env)
  }

  /** Asks the next question of these runs, if there is one and none is open. */
  async look(runs: readonly DeskRun[]): Promise<void> {
    const { desk } = this.options
    if (this.current !== undefined && (await this.isOpen(this.current))) return
    const approvals = this.options.questionsOnly === true ? [] : await approvalsOfRuns(desk, runs)
    const asked: readonly PersonRequest[] = [...approvals, ...(await questionsOfRuns(desk, runs))]
    const next = asked.find((one) => !this.answers.has(requestKey(one)))
    const folder = next === undefined ? undefined : await this.folderFor(next)
    if (this.isClosed || isSame(next, this.current) || (next !== undefined && this.answers.has(requestKey(next))))
      return
    this.folder = folder
    this.show(next)
  }

  private async folderFor({ conversationId }: PersonRequest): Promise<string | undefined> {
    return lookWith(this.options.desk.store, conversationId, (tree) => workspaceOf(tree, conversationId))
  }

  async settled(): Promise<void> {
    await Promise.all(this.answers.values())
  }

  /** Releases the keyboard. */
  close(): void {
    this.isClosed = true
    this.show(undefined)
  }

  private async isOpen(asked: PersonRequest): Promise<boolean> {
    const node = await lookWith(this.options.desk.store, asked.nodeId, (tree) => tree.node(asked.nodeId))
    if (node === undefined || isQuestion(asked)) return node?.state === 'waiting'
    return seenOf(node) === asked.seen
  }

  private show(next: PersonRequest | undefined): void {
    const wasAsking = this.current !== undefined
    clearTimeout(this.soon)
    this.current = next
    this.isHeard = false
    this.isWrong = false
    this.line = new TypedLine(next !== undefined && isQuestion(next) ? LONGEST.words : LONGEST.key)
    this.options.view.ask(next === undefined ? null : this.question(next), () => this.hearSoon(next))
    if (next !== undefined && !wasAsking) this.listen()
    if (next === undefined && wasAsking) this.leaveOff()
  }

  /** Reads and drops everything typed so far before it listens. */
  private hearSoon(shown: PersonRequest | undefined): void {
    const begin = (): void => {
      if (this.current !== shown) return
      this.isHeard = true
      this.draw()
    }
    this.soon = setTimeout(() => setImmediate(begin), UNREAD_MS)
  }

  private listen(): void {
    process.stdin.setRawMode(true)
    process.stdin.resume()
    process.stdin.on('data', this.onKeys)
  }

  private leaveOff(): void {
    process.stdin.off('data', this.onKeys)
    process.stdin.setRawMode(false)
    process.stdin.pause()
  }

  private hear(keys: string): void {
    if (keys.includes(CTRL_C)) process.kill(process.pid, 'SIGINT')
    if (!this.isHeard || keys.startsWith(ESCAPE)) return
    for (const key of keys) {
      const said = this.line.take(key)
      const word = said === undefined ? undefined : this.wordOf(said)
      // Keys typed after an answer were not meant for the next question.
      if (word !== undefined) return this.answer(word)
      if (said !== undefined && said.trim() !== '') this.isWrong = true
      else if (this.line.text !== '') this.isWrong = false
    }
    this.draw()
  }

  private wordOf(said: string): PersonAnswer | undefined {
    if (this.current === undefined) return undefined
    if (!isQuestion(this.current)) return WORDS[said.toLowerCase()]
    return said.trim() === '' ? undefined : { text: said.trim() }
  }

  private draw(): void {
    if (this.current !== undefined) this.options.view.ask(this.question(this.current))
  }

  private answer(word: PersonAnswer): void {
    if (this.current === undefined) return
    const asked = this.current
    const key = requestKey(asked)
    this.show(undefined)
    this.answers.set(
      key,
      this.record(asked, word).finally(() => this.answers.delete(key)),
    )
  }

  private async record(asked: PersonRequest, word: PersonAnswer): Promise<void> {
    const { desk, view, by } = this.options
    const only = { seen: asked.seen }
    try {
      await desk.answer(asked.nodeId, { ...word, ...only, by })
      view.say(`${confirmation(asked, word)}\n`)
    } catch (error) {
      view.say(`${error instanceof Error ? error.message : String(error)}\n`)
    }
  }

  private question(asked: PersonRequest): ScreenQuestion {
    const typed = this.isHeard ? ` > ${oneLine(this.line.text)}` : ''
    if (isQuestion(asked)) {
      const who = asked.path.map(oneLine).join(' > ')
      return { text: `${who} asks: ${oneLine(asked.text)}`, prompt: `Your answer, then Enter${typed}` }
    }
    return {
      text: askedText(asked, requestLines(asked, this.folder)),
      prompt: `${this.isWrong ? 'Not an answer. ' : ''}Allow? [y]es, [a]lways this exact request, [n]o, then Enter${typed}`,
    }
  }
}

function isSame(one: PersonRequest | undefined, other: PersonRequest | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return requestKey(one) === requestKey(other)
}

function confirmation(asked: PersonRequest, word: PersonAnswer): string {
  if (isQuestion(asked)) return `Answered ${asked.path.map(oneLine).join(' > ')}.`
  const { allow, always = false } = 'allow' in word ? word : { allow: false }
  return `${allow ? 'Allowed' : 'Denied'} ${exactLine(asked.request)}${always ? ' for this conversation' : ''}.`
}

const CTRL_C = '\u0003'
const ESCAPE = '\u001b'

type PersonAnswer = QuestionAnswer | Pick<ApprovalDecision, 'allow' | 'always'>

const WORDS: Readonly<Record<string, PersonAnswer | undefined>> = {
  y: { allow: true },
  a: { allow: true, always: true },
  n: { allow: false },
}

/** Chooses who answers here: the person at the terminal, or `--yes`. */
export function respondersFor(call: Call, desk: Desk, view: RunView): readonly Responder[] {
  const by = call.env['USER'] ?? 'user'
  const isInline = !isSet(call, 'json') && InlineAsk.isPossible(call.env)
  const isAllowed = isSet(call, 'yes')
  return [
    ...(isAllowed ? [new SayYes({ desk, view, by })] : []),
    ...(isInline ? [new InlineAsk({ desk, view, by, questionsOnly: isAllowed })] : []),
  ]
}

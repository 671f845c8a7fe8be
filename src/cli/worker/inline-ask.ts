import type { PendingApproval, Run, Runtime } from '../../index.ts'
import { oneLine } from '../terminal/clean.ts'
import type { View } from '../watch/view.ts'
import { preview } from '../watch/words.ts'

const CTRL_C = '\u0003'
const PREVIEW = 200

export interface InlineAskOptions {
  readonly runtime: Runtime
  readonly view: View
  readonly by: string
}

/** Asks the person at the terminal, one question at a time, below the tree. */
export class InlineAsk {
  private readonly options: InlineAskOptions
  private current: PendingApproval | undefined
  private readonly onKeys = (keys: Buffer): void => {
    for (const key of keys.toString('utf8')) this.take(key)
  }

  constructor(options: InlineAskOptions) {
    this.options = options
  }

  /** Is there somebody to ask? */
  static isPossible(): boolean {
    return process.stdin.isTTY === true && process.stdout.isTTY === true
  }

  /** Puts the next question of these runs, if there is one and none is open. */
  async look(runs: readonly Run[]): Promise<void> {
    const { runtime } = this.options
    if (this.current !== undefined && runtime.store.node(this.current.nodeId)?.state === 'awaiting_approval') return
    const ids = new Set(runs.map(({ id }) => id))
    const next = (await runtime.approvals()).find(({ rootRunId }) => ids.has(rootRunId))
    this.show(next)
  }

  /** Gives the keyboard back. */
  close(): void {
    this.show(undefined)
  }

  private show(next: PendingApproval | undefined): void {
    const wasAsking = this.current !== undefined
    this.current = next
    this.options.view.ask(next === undefined ? null : questionOf(next))
    if (next !== undefined && !wasAsking) this.listen()
    if (next === undefined && wasAsking) this.leaveOff()
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

  private take(key: string): void {
    if (key === CTRL_C) process.kill(process.pid, 'SIGINT')
    const word = WORDS[key.toLowerCase()]
    if (word === undefined || this.current === undefined) return
    const { runtime, view, by } = this.options
    const { nodeId, request } = this.current
    this.show(undefined)
    runtime.answer(nodeId, { ...word, by }).then(
      () =>
        view.say(
          `${word.allow ? 'Allowed' : 'Denied'} ${oneLine(request)}${word.always ? ' for this conversation' : ''}.\n`,
        ),
      (error: unknown) => view.say(`${error instanceof Error ? error.message : String(error)}\n`),
    )
  }
}

const WORDS: Readonly<Record<string, { readonly allow: boolean; readonly always?: boolean } | undefined>> = {
  y: { allow: true },
  a: { allow: true, always: true },
  n: { allow: false },
}

function questionOf({ path, request, tool, input, reason }: PendingApproval): string {
  const what = tool === null ? oneLine(request) : `${oneLine(tool)} ${preview(input, PREVIEW)}`
  return `${path.map(oneLine).join(' > ')} wants ${what} (${oneLine(reason)}). Allow? y yes, a always here, n no`
}

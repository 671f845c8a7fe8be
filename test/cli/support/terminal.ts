import { type IPty, spawn } from '@lydell/node-pty'
import { onTestFinished } from 'vitest'
import { type Place, program, until } from './cli.ts'
import { ScreenModel } from './screen-model.ts'

/** What a program writes last is lost when the end of its terminal is seen first: the terminal outlives it for a moment. */
const LINGERING = 'trap : INT; "$@"; code=$?; sleep 0.3; exit $code'

const END_OF_FRAME = '\u001b[?2026l'

export interface TerminalOptions {
  readonly cols: number
  readonly rows: number
  readonly env?: NodeJS.ProcessEnv
}

/** The command line in a real pseudo-terminal, and what is on its screen. */
export class Terminal {
  readonly screen: ScreenModel
  /** Everything that was written to the terminal. */
  written = ''
  readonly ended: Promise<number>
  private readonly pty: IPty

  constructor(place: Place, args: readonly string[], { cols, rows, env = {} }: TerminalOptions) {
    this.screen = new ScreenModel(cols, rows)
    this.pty = spawn('/bin/sh', ['-c', LINGERING, 'sh', process.execPath, program, ...args], {
      name: env['TERM'] ?? 'xterm-256color',
      cols,
      rows,
      cwd: place.folder,
      env: { ...place.env, ...env },
    })
    this.pty.onData((text) => {
      this.written += text
      this.screen.write(text)
    })
    this.ended = new Promise((resolve) => this.pty.onExit(({ exitCode }) => resolve(exitCode)))
    onTestFinished(() => {
      try {
        this.pty.kill('SIGKILL')
      } catch {
        // It has ended by itself.
      }
    })
  }

  type(text: string): void {
    this.pty.write(text)
  }

  resize(cols: number, rows: number): void {
    this.screen.resize(cols, rows)
    this.pty.resize(cols, rows)
  }

  /** Waits for the end of the next frame: a while will pass before one more is on its way. */
  async frame(): Promise<void> {
    const from = this.written.length
    await until('one more frame', () => this.written.length > from && this.written.endsWith(END_OF_FRAME))
  }

  /** Waits until the screen shows this. */
  async shows(check: string | ((screen: string) => boolean)): Promise<void> {
    const isShown = typeof check === 'string' ? (screen: string) => screen.includes(check) : check
    const seen = () => isShown(this.screen.text) || undefined
    await until(String(check), seen).catch((error: unknown) => {
      throw new Error(`${error}\nOn the screen:\n${this.screen.all}`)
    })
  }
}
